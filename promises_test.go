package ostiary_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/exampleserver"
)

// R1.3: what status shows is what was negotiated: one server speaks only the older revisions, and nothing was configured.
// S-024: ex writes to stderr all the while, and is none the worse for it.
func TestR1_3_StatusShowsWhatWasNegotiated(t *testing.T) {
	var tables strings.Builder
	eras := map[string]exampleserver.Era{"old": exampleserver.EraLegacy, "new": exampleserver.EraModern}
	for _, pkg := range []string{"old", "new"} {
		up := httptest.NewServer(exampleserver.Handler(exampleserver.Options{Era: eras[pkg]}))
		t.Cleanup(up.Close)
		fmt.Fprintf(&tables, "[provider.%s]\ntransport = \"http\"\nurl = %q\ntrust_tier = \"CONTROLLED_LOCAL\"\nallowed_tools = [\"echo\"]\n[provider.%s.policy]\navailable = true\napproval = \"never\"\n", pkg, up.URL+"/mcp", pkg)
	}
	h := startHost(t, writeConfig(t, t.TempDir(), tables.String()))
	s, err := h.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Providers {
		want := map[string]string{"old": "2025-11-25", "new": "2026-07-28", "ex": p.Revision}[p.Package] // what ex has had time to say
		if p.Revision != want || p.State.String() != "READY" || !p.Available {
			t.Errorf("%s: revision %s, state %s", p.Package, p.Revision, p.State)
		}
	}
	// S-009: the two call themselves by one name, and are two providers with tools of their own all the same.
	if a, b := s.Providers[1], s.Providers[2]; a.ServerName != b.ServerName || a.Package == b.Package {
		t.Errorf("server names %q and %q", a.ServerName, b.ServerName)
	}
	tools, err := h.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, tool := range tools {
		if tool.ID == "aur.mcp.new.echo" || tool.ID == "aur.mcp.old.echo" {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d of the two tools called echo are there", seen)
	}
}

// R1.1, R14.2: there is no other transport, and none is guessed.
func TestR1_1_NoOtherTransport(t *testing.T) {
	for _, transport := range []string{"sse", "http+sse", "websocket", "a2a", ""} {
		_, err := config.Parse("ostiary.toml", fmt.Appendf(nil, "[provider.x]\ntransport = %q\nurl = \"https://x.example/sse\"\ntrust_tier = \"ORG_MANAGED\"\nallowed_tools = [\"a\"]\n[provider.x.policy]\navailable = true\n", transport),
			func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), "provider.x.transport") {
			t.Errorf("transport %q: %v", transport, err)
		}
	}
	// A server of 2024-11-05, which wants a GET first and answers POST with 405, is not talked to in that way.
	gets := 0
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets++
		}
		http.Error(w, "POST is not for this path", http.StatusMethodNotAllowed)
	}))
	defer old.Close()
	dir := t.TempDir()
	path := writeConfig(t, dir, "\n[provider.old]\ntransport = \"http\"\nurl = \""+old.URL+"/sse\"\ntrust_tier = \"CONTROLLED_LOCAL\"\nallowed_tools = [\"a\"]\n[provider.old.policy]\navailable = true\n")
	h, err := ostiary.New(ostiary.Options{ConfigFile: path, DataDir: filepath.Join(dir, "data"), LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err == nil || gets != 0 {
		_ = h.Stop(t.Context())
		t.Errorf("start: %v, after %d GETs", err, gets)
	}
}

// R7.3: a tool that is listed, of a provider whose connection is in order, is called only if policy says so.
func TestR7_3_VisibleIsNotAllowed(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	path := writeConfig(t, dir, `
[provider.ex.policy.tools.write_note]
approval = "required"
[provider.ex.policy.tools.count]
available = false
[approval]
hold_seconds = 0
[export.default]
tools  = ["aur.mcp.ex.write_note", "aur.mcp.ex.count"]
naming = "flat"
`, "-notes", notes)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte("write_note")) {
		t.Fatal("the tool is not allowed at all")
	}
	h := startHost(t, path)
	c := &client{t: t, url: "http://" + h.Addr() + "/v1/mcp", modern: true}
	if list := c.do("tools/list", "", "", ""); !bytes.Contains(list.Result, []byte("ex__write_note")) {
		t.Fatalf("not listed: %s", list.Result)
	}
	for name, code := range map[string]string{"ex__write_note": "approval_pending", "ex__count": "denied"} {
		args := map[string]string{"ex__write_note": `{"text":"x"}`, "ex__count": `{}`}[name]
		f := c.call(name, args, "")
		if !bytes.Contains(f.Result, []byte(`"code":"`+code+`"`)) || !bytes.Contains(f.Result, []byte(`"delivery":"not_sent"`)) || !bytes.Contains(f.Result, []byte(`"isError":true`)) {
			t.Errorf("%s: %s", name, f.Result)
		}
	}
	if _, err := os.Stat(notes); err == nil {
		t.Error("the note was written")
	}
}

// S-058: progress does not keep a call alive beyond its time. S-078: two calls with the same parameters are two calls, and
// nothing is answered from memory.
func TestS058_TimeIsUpWhateverTheProgress(t *testing.T) {
	dir := t.TempDir()
	path := writeConfig(t, dir, `
[export.default]
tools  = ["aur.mcp.ex.slow", "aur.mcp.ex.count"]
naming = "flat"
`)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte("close_seconds = 2"), []byte("close_seconds = 2\ncall_timeout_seconds = 1"), 1)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, path)
	c := &client{t: t, url: "http://" + h.Addr() + "/v1/mcp", modern: true}
	f := c.call("ex__slow", `{"steps":200,"ms":50}`, `"progressToken":"p"`)
	if !bytes.Contains(f.Result, []byte(`"code":"deadline_exceeded"`)) || !bytes.Contains(f.Result, []byte(`"status":"unknown"`)) {
		t.Errorf("got %s", f.Result)
	}
	first, second := c.call("ex__count", `{}`, ""), c.call("ex__count", `{}`, "")
	if bytes.Equal(first.Result, second.Result) {
		t.Errorf("two calls have one answer: %s", first.Result)
	}
}
