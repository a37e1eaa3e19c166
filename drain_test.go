package ostiary_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/internal/exampleserver"
)

// F-10: a gateway that stops lets the calls in work end, and their providers with them, before anything is closed; what
// comes then is told to come back.
func TestF10_StopLetsCallsEnd(t *testing.T) {
	up := httptest.NewServer(exampleserver.Handler(exampleserver.Options{}))
	t.Cleanup(up.Close)
	path := writeConfig(t, t.TempDir(), `
[provider.web]
transport     = "http"
url           = "`+up.URL+`/mcp"
trust_tier    = "CONTROLLED_LOCAL"
allowed_tools = ["slow"]
[provider.web.policy]
available = true
approval  = "never"
[export.default]
tools  = ["aur.mcp.ex.slow", "aur.mcp.web.slow"]
naming = "flat"
`)
	h, err := ostiary.New(ostiary.Options{ConfigFile: path, DataDir: filepath.Join(filepath.Dir(path), "data"), LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	addr := h.Addr()
	type answer struct {
		status int
		body   []byte
		err    error
	}
	answers := make(chan answer, 2)
	for _, tool := range []string{"ex__slow", "web__slow"} {
		go func() {
			var a answer
			a.status, a.body, a.err = callModern(context.Background(), http.DefaultClient, addr, tool, `{"steps":1,"ms":1500}`)
			answers <- a
		}()
	}
	waitIntents(t, h, filepath.Join(filepath.Dir(path), "data"), 2)
	if err := h.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
	for range 2 {
		if a := <-answers; a.err != nil || a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`"status":"succeeded"`)) {
			t.Errorf("a call in work at the stop: HTTP %d, %v, %s", a.status, a.err, a.body)
		}
	}
	if _, _, err := callModern(context.Background(), http.DefaultClient, addr, "ex__slow", `{}`); err == nil {
		t.Error("a stopped gateway answers")
	}
}

// waitIntents waits until so many calls are on record as let through.
func waitIntents(t testing.TB, h *ostiary.Host, dir string, n int) {
	t.Helper()
	l, err := ostiary.OpenLedger(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		seen := 0
		err := l.Records(t.Context(), 0, 0, func(r ostiary.LedgerRecord) error {
			if r.Kind == "call.intent" {
				seen++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if seen >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d calls were let through; the gateway is ready: %v", seen, n, func() bool { ok, _ := h.Ready(); return ok }())
		}
	}
}
