//go:build unix

package mcpwire_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/sqlstore"
)

const peerEnv = "OSTIARY_TEST_PEER"

func TestMain(m *testing.M) {
	if part := os.Getenv(peerEnv); part != "" {
		servePeer(part)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answer is what a small modern server says to one message; "" : nothing.
func answer(part string, f content.Frame) string {
	result := func(members string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, f.ID, members)
	}
	switch f.Method {
	case "server/discover":
		return result(`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}`)
	case "tools/list":
		if part == "no-list" {
			return ""
		}
		return result(`"tools":[{"name":"echo","inputSchema":{"type":"object"}}]`)
	case "tools/call":
		return result(`"content":[{"type":"text","text":"hi"}],"structuredContent":{"big":12345678901234567890}`)
	}
	if f.Kind == content.Request {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, f.ID)
	}
	return ""
}

func servePeer(part string) {
	in := bufio.NewReader(os.Stdin)
	signal.Ignore(syscall.SIGTERM)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if part == "no-list" {
				time.Sleep(time.Hour)
			}
			return
		}
		if f, err := content.ParseFrame(line, content.FrameLimits{}); err == nil {
			if s := answer(part, f); s != "" {
				fmt.Println(s)
			}
		}
	}
}

func stdioProfile(pkg, part string) provider.Profile {
	return provider.Profile{
		Package: pkg, Transport: provider.StdioCommand, Trust: provider.ControlledLocal, Required: true, Protocol: "auto",
		Stdio:        &provider.Stdio{Command: os.Args[0], Env: map[string]string{peerEnv: part}},
		AllowedTools: []provider.AllowedTool{{Raw: "echo"}}, Limits: provider.DefaultLimits, Relist: time.Minute,
	}
}

// spy keeps the tickets that the gate hands out.
type spy struct {
	*mcpwire.Upstreams
	mu   sync.Mutex
	last gate.Cleared
}

func (s *spy) Call(ctx context.Context, c gate.Cleared) call.Answer {
	s.mu.Lock()
	s.last = c
	s.mu.Unlock()
	return s.Upstreams.Call(ctx, c)
}

// noSealer is for paths on which nothing is held.
type noSealer struct{}

func (noSealer) Seal([]byte, []byte) ([]byte, error) {
	return nil, errors.New("nothing is sealed here")
}

// path is a whole path of a call, from the gate to a server.
func path(t *testing.T, p provider.Profile) (*gate.Gate, *provider.Manager, *spy) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Dir: t.TempDir(), Logger: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	up := &spy{Upstreams: mcpwire.New(mcpwire.Options{Logger: log})}
	reg := new(provider.Registry)
	m, err := provider.NewManager(provider.ManagerOptions{
		Connector: up, Profiles: []provider.Profile{p}, Registry: reg, Logger: log, Now: time.Now, OnEvent: func(provider.Event) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Stop(context.WithoutCancel(t.Context())) })
	pol, err := policy.New([]string{p.Package}, []policy.ToolSet{{Package: p.Package, Available: true, Approval: policy.ApprovalNever}})
	if err != nil {
		t.Fatal(err)
	}
	var book admission.Book
	err = s.Update(t.Context(), func(tx store.Tx) error {
		offer := admission.Offer{Provider: p.Package}
		for _, tool := range m.Providers()[0].Catalog().Tools {
			offer.Tools = append(offer.Tools, tool.Descriptor)
		}
		plan, err := admission.Compare(nil, offer)
		if err != nil {
			return err
		}
		_, err = admission.Record(tx, &plan, admission.FirstUse, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(v store.View) error { return book.Load(v) }); err != nil {
		t.Fatal(err)
	}
	engine, err := firewall.New(firewall.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules := approval.DefaultRules()
	n := 0
	g, err := gate.New(gate.Options{Store: s, Registry: reg, Policy: pol, Upstream: up, Logger: log, Now: time.Now,
		NewID: func() call.ID { n++; return call.ID(fmt.Sprintf("c%d", n)) },
		Book:  &book, Isolate: func(context.Context, admission.Quarantine) {}, Approvals: &rules, Hub: approval.NewHub(1), Firewall: engine, Sealer: noSealer{}})
	if err != nil {
		t.Fatal(err)
	}
	return g, m, up
}

// A call travels from the gate to a server and back, on either transport; when the connection is gone its tickets are
// worth nothing, and it is certain that nothing was sent.
func TestCallThroughTheGate(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := bufio.NewReader(r.Body).ReadBytes('\n')
		f, _ := content.ParseFrame(body, content.FrameLimits{})
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer("", f))
	}))
	t.Cleanup(web.Close)
	overHTTP := stdioProfile("p", "")
	overHTTP.Transport, overHTTP.Stdio, overHTTP.HTTP = provider.StreamableHTTP, nil, &provider.HTTP{URL: web.URL}
	for name, p := range map[string]provider.Profile{"stdio": stdioProfile("p", "plain"), "http": overHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m, up := path(t, p)
			r := g.Call(t.Context(), call.Request{Principal: call.Principal{ID: "alice"}, Tool: "aur.mcp.p.echo", Arguments: []byte(`{}`)})
			if r.Outcome.Status != call.Succeeded || r.Outcome.Delivery != call.Confirmed || !strings.Contains(string(r.Result), "12345678901234567890") {
				t.Fatalf("got %+v %s", r.Outcome, r.Result)
			}
			if err := m.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a := up.Upstreams.Call(t.Context(), up.last); a.Delivery != call.NotSent || a.Fault != call.CodeProviderUnavailable {
				t.Errorf("a ticket of a generation that is gone: %+v", a)
			}
		})
	}
}

// R6.12: the empty ticket, which anyone can make, places no call.
func TestEmptyTicketIsRefused(t *testing.T) {
	t.Parallel()
	a := mcpwire.New(mcpwire.Options{}).Call(t.Context(), gate.Cleared{})
	if a.Delivery != call.NotSent || a.Fault == "" {
		t.Errorf("got %+v", a)
	}
}

// R2.8: a start that fails says which provider, in which phase, why, and what to do.
func TestR2_8_StartErrors(t *testing.T) {
	t.Parallel()
	absent := stdioProfile("p", "plain")
	absent.Stdio = &provider.Stdio{Command: "/no/such/command"}
	unreachable := stdioProfile("p", "plain")
	unreachable.Transport, unreachable.HTTP = provider.StreamableHTTP, &provider.HTTP{URL: "http://127.0.0.1:1/mcp"}
	plain := stdioProfile("p", "plain")
	plain.Transport, plain.HTTP = provider.StreamableHTTP, &provider.HTTP{URL: "http://example.com/mcp"}
	sandboxed := stdioProfile("p", "plain")
	sandboxed.Transport = provider.SandboxStdio
	for name, c := range map[string]struct {
		p     provider.Profile
		phase provider.Phase
	}{
		"no such command":   {absent, provider.PhaseConnect},
		"nobody listens":    {unreachable, provider.PhaseNegotiate},
		"http, not local":   {plain, provider.PhaseConnect},
		"no such transport": {sandboxed, provider.PhaseConnect},
	} {
		var phases []provider.Phase
		_, err := mcpwire.New(mcpwire.Options{}).Connect(t.Context(), provider.Generation{Attachment: "a", Number: 1}, c.p,
			func(ph provider.Phase) { phases = append(phases, ph) })
		se, ok := errors.AsType[*provider.StartError](err)
		if !ok || se.Provider != "p" || se.Phase != c.phase || se.Cause == nil {
			t.Errorf("%s: got %v (phases %v)", name, err, phases)
		}
	}
}

// R2.1: a server that stops answering in the middle of its start, and ignores stdin and TERM, is gone soon after the
// deadline.
func TestR2_1_StartEndsInTime(t *testing.T) {
	t.Parallel()
	p := stdioProfile("p", "no-list")
	p.Limits.Connect = 2 * time.Second
	up := mcpwire.New(mcpwire.Options{})
	m, err := provider.NewManager(provider.ManagerOptions{
		Connector: up, Profiles: []provider.Profile{p}, Registry: new(provider.Registry), Logger: slog.New(slog.DiscardHandler),
		Now: time.Now, OnEvent: func(provider.Event) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = m.Start(t.Context())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	se, ok := errors.AsType[*provider.StartError](err)
	if !ok || se.Phase != provider.PhaseList || !errors.Is(err, context.DeadlineExceeded) || se.Advice == "" {
		t.Errorf("got %v", err)
	}
}

// Two connections of one generation cannot be.
func TestGenerationIsConnectedOnce(t *testing.T) {
	t.Parallel()
	up := mcpwire.New(mcpwire.Options{})
	gen := provider.Generation{Attachment: "a", Number: 1}
	l, err := up.Connect(t.Context(), gen, stdioProfile("p", "plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Connect(t.Context(), gen, stdioProfile("p", "plain"), nil); err == nil {
		t.Error("connected twice")
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	l, err = up.Connect(t.Context(), gen, stdioProfile("p", "plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close(t.Context())
}
