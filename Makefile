# Every target works in a fresh clone with Go 1.26 alone; interop and conformance need Node 20 or newer and npm besides.

GO          ?= go
BENCH_FLAGS ?=
FUZZ_TIME   ?= 20s
FUZZ_PACKAGES ?= ./...
CROSS       ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PROGRAMS     = ^(TestF01_.*|TestScripts)$$
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2

export CGO_ENABLED ?= 0

.PHONY: build demo chat test race lint cross vet-cross fuzz docs bench interop conformance clean

build:                ## bin/ostiary
	$(GO) build -trimpath -o bin/ostiary ./cmd/ostiary

demo: build           ## a gateway, real calls, refusals, a drift, the ledger: half a minute
	sh scripts/demo

chat: build           ## two agents in one group chat, none of whom can talk past what it has not seen: some seconds
	sh scripts/chat

test:                 ## all tests
	$(GO) test ./...

race:                 ## all tests with the race detector, which needs cgo; those that start the program many times without it
	CGO_ENABLED=1 $(GO) test -race -skip '$(PROGRAMS)' ./...
	$(GO) test -run '$(PROGRAMS)' . ./internal/cli

lint:                 ## gofmt, vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt is wanted by:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

cross:                ## builds for all systems, without cgo; CROSS='darwin/arm64' for some
	@set -e; for target in $(CROSS); do echo "$$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./cmd/ostiary; done

vet-cross:            ## vet, tests included, for the systems that this one is not
	@set -e; for os in darwin windows; do echo "$$os"; CGO_ENABLED=0 GOOS=$$os $(GO) vet ./...; done

fuzz:                 ## every fuzz target for FUZZ_TIME, or those of FUZZ_PACKAGES
	sh scripts/fuzz $(FUZZ_TIME) $(FUZZ_PACKAGES)

docs:                 ## writes the generated documents again
	$(GO) test . ./internal/cli ./internal/config -update

bench: build          ## measures; BENCH_FLAGS=-short, BENCH_FLAGS='-write docs/PERFORMANCE.md'
	$(GO) build -o bin/bench/ ./bench/upstream ./bench/proxy ./bench/load ./bench/idle ./bench/tools ./bench/sdkgateway
	$(GO) build -o bin/bench/bench ./bench/run
	bin/bench/bench -bin bin/bench -ostiary bin/ostiary $(BENCH_FLAGS)

interop: build        ## real servers and real clients
	cache=$$(interop/install servers clients go) && $(GO) build -o bin/interop ./interop/run && bin/interop -cache "$$cache" $(INTEROP_FLAGS)

conformance: build    ## the official conformance suite, both revisions, from both sides
	cache=$$(interop/install conformance) && $(GO) build -o bin/conformance ./interop/conformance && bin/conformance -cache "$$cache" $(CONFORMANCE_FLAGS)

clean:
	rm -rf bin
