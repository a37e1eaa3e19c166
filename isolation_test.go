package ostiary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/internal/exampleserver"
)

// startHost starts a gateway on a configuration and stops it with the test.
func startHost(t testing.TB, config string) *ostiary.Host {
	t.Helper()
	h, err := ostiary.New(ostiary.Options{ConfigFile: config, DataDir: filepath.Join(filepath.Dir(config), "data"), LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// callModern places one tools/call of 2026-07-28 and returns the whole body of the answer.
func callModern(ctx context.Context, client *http.Client, addr, tool, arguments string) (status int, body []byte, err error) {
	return callModernMeta(ctx, client, addr, tool, arguments, "")
}

// callModernMeta is callModern with further members of _meta.
func callModernMeta(ctx context.Context, client *http.Client, addr, tool, arguments, meta string) (status int, body []byte, err error) {
	if meta != "" {
		meta = "," + meta
	}
	return postModernWith(ctx, client, addr, tool, fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}%s}}`, tool, arguments, meta))
}

// postModern makes a tools/call with all of its params.
func postModern(ctx context.Context, addr, tool, params string) (status int, body []byte, err error) {
	return postModernWith(ctx, http.DefaultClient, addr, tool, params)
}

func postModernWith(ctx context.Context, client *http.Client, addr, tool, params string) (status int, body []byte, err error) {
	msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/mcp", strings.NewReader(msg))
	if err != nil {
		return 0, nil, err
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + testToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// however many callers there are, with messages large and small and callers that give up half way, each gets back
// what it sent and nothing of anybody else's. Both transports; messages share buffers on all of them.
func TestA40_NothingCrosses(t *testing.T) {
	up := httptest.NewServer(exampleserver.Handler(exampleserver.Options{}))
	t.Cleanup(up.Close) // after the gateway, which listens to it, has stopped
	dir := t.TempDir()
	path := writeConfig(t, dir, fmt.Sprintf(`
[provider.web]
transport     = "http"
url           = "%s/mcp"
trust_tier    = "CONTROLLED_LOCAL"
allowed_tools = ["echo"]
ledger        = "relaxed"
[provider.web.policy]
available = true
approval  = "never"
[provider.web.policy.tools.echo]
effect    = "READ_ONLY"
[export.default]
tools  = ["aur.mcp.web.echo", "aur.mcp.ex.echo"]
naming = "flat"
`, up.URL))
	h := startHost(t, path)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for w := range 24 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 40 {
				mark := fmt.Sprintf("w%02d-%02d-", w, i)
				text := strings.Repeat(mark, 1+rnd.IntN(1<<rnd.IntN(13)))
				tool := []string{"web__echo", "ex__echo"}[rnd.IntN(2)]
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				if rnd.IntN(5) == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rnd.IntN(3000))*time.Microsecond)
				}
				status, body, err := callModern(ctx, client, h.Addr(), tool, fmt.Sprintf(`{"text":%q}`, text))
				cancel()
				if err != nil {
					continue // given up: what came until then was cut by the client itself
				}
				var answer struct {
					Result struct {
						StructuredContent json.RawMessage
					}
				}
				want := fmt.Sprintf(`{"text":%q}`, text)
				if err := json.Unmarshal(body, &answer); status != http.StatusOK || err != nil || !bytes.Equal(answer.Result.StructuredContent, []byte(want)) {
					t.Errorf("worker %d, call %d of %s: HTTP %d, %v, sent %d bytes of %s, got %.200s", w, i, tool, status, err, len(want), mark, body)
					return
				}
			}
		})
	}
	wg.Wait()
}
