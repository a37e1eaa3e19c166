package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

// settings are what a client may say, and whether it is strictly version 1 (R4.1).
var settings = map[string]bool{
	`{"version":1}`: true, ` { "version" : 1 } `: true, `{"\u0076ersion":1}`: true,
	`{"version":1.0}`: false, `{"version":1e0}`: false, `{"version":10e-1}`: false, `{"version":"1"}`: false, `{"version":true}`: false,
	`{"version":2}`: false, `{"version":null}`: false, `{}`: false, `null`: false, `1`: false, `[]`: false, `[1]`: false,
	`{"version":1,"more":0}`: false, `{"version":1,"version":1}`: false, `{"version":2,"version":1}`: false, `{"Version":1}`: false,
}

func modernCall(id int, method, params, extensions string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":%s}}}}`,
		id, method, params, extensions)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":{"extensions":%s}}}`

const unknownCall = `"name":"raw","arguments":{"how":"unknown"},`

// R4.8, R4.1: settings count by their own bytes: of each request in 2026-07-28, of the handshake before it.
func TestR4_8_StrictSettings(t *testing.T) {
	ext := contract.New(contract.Options{})
	server := newServer(ext)
	for said, strict := range settings {
		extensions := fmt.Sprintf(`{%q:%s}`, contract.ToolContract, said)
		p := newPeer(t, ext.Transport, server)
		if got := p.ask(modernCall(1, "tools/call", unknownCall, extensions)); hasMeta(got) != strict {
			t.Errorf("2026-07-28, %s: %v", said, got)
		}
		// What the next request says is another matter.
		if got := p.ask(modernCall(2, "tools/call", unknownCall, `{}`)); hasMeta(got) {
			t.Errorf("2026-07-28, %s, then nothing: %v", said, got)
		}
		p = newPeer(t, ext.Transport, server)
		p.ask(fmt.Sprintf(initialize, extensions))
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if got := p.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + strings.TrimSuffix(unknownCall, ",") + `}}`); hasMeta(got) != strict {
			t.Errorf("2025-11-25, %s: %v", said, got)
		}
	}
	// A second member of the same name, anywhere on the way, is as good as none.
	p := newPeer(t, ext.Transport, server)
	if got := p.ask(modernCall(1, "tools/call", unknownCall, fmt.Sprintf(`{%q:{"version":1},%[1]q:{"version":1}}`, contract.ToolContract))); hasMeta(got) {
		t.Errorf("twice: %v", got)
	}
}

func hasMeta(result map[string]any) bool {
	meta, _ := result["_meta"].(map[string]any)
	_, ok := meta[contract.ToolContract]
	return ok
}

// R4.8: over Streamable HTTP the same, through Handler.
func TestR4_8_StrictSettingsHTTP(t *testing.T) {
	ext := contract.New(contract.Options{})
	server := newServer(ext)
	get := func(*http.Request) *mcp.Server { return server }
	stateless := ext.Handler(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	sessions := ext.Handler(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	post := func(h http.Handler, session, body string) (map[string]any, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", old)
		} else if strings.Contains(body, "2026-07-28") {
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", "raw")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var m map[string]any
		if w.Code != http.StatusAccepted {
			if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || m["result"] == nil {
				t.Fatalf("%s\nHTTP %d %s", body, w.Code, w.Body)
			}
		}
		result, _ := m["result"].(map[string]any)
		return result, w.Header().Get("Mcp-Session-Id")
	}
	for said, strict := range settings {
		extensions := fmt.Sprintf(`{%q:%s}`, contract.ToolContract, said)
		if got, _ := post(stateless, "", modernCall(1, "tools/call", unknownCall, extensions)); hasMeta(got) != strict {
			t.Errorf("2026-07-28, %s: %v", said, got)
		}
		_, session := post(sessions, "", fmt.Sprintf(initialize, extensions))
		post(sessions, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if got, _ := post(sessions, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+strings.TrimSuffix(unknownCall, ",")+`}}`); hasMeta(got) != strict {
			t.Errorf("2025-11-25, %s: %v", said, got)
		}
	}
}

// R4.8: a body that is too large to be looked at, or that cannot be read, reaches the handler as it is.
func TestR4_8_HandlerPassesBodies(t *testing.T) {
	ext := contract.New(contract.Options{})
	var got []byte
	var fault error
	h := ext.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, fault = io.ReadAll(r.Body) }))
	serve := func(body io.Reader) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
	}
	large := []byte(`{"params":{"capabilities":{"extensions":{"` + contract.ToolContract + `":{"version":1.0}}}},"x":"` + strings.Repeat("x", 5<<20) + `"}`)
	if serve(bytes.NewReader(large)); fault != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes of %d, %v", len(got), len(large), fault)
	}
	if serve(io.MultiReader(strings.NewReader("abc"), broken{})); fault != io.ErrUnexpectedEOF || string(got) != "abc" {
		t.Errorf("%q, %v", got, fault)
	}
	if serve(strings.NewReader("no JSON at all")); string(got) != "no JSON at all" {
		t.Errorf("%q", got)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What is cleaned stays the same JSON but for the settings that were no version 1, and what a decoder finds in it is what
// was judged.
func FuzzR4_8_Settings(f *testing.F) {
	for said := range settings {
		f.Add([]byte(fmt.Sprintf(`{"a":[1,{}],"capabilities":{"extensions":{%q:%s,"x":{}}},"z":""}`, contract.ToolContract, said)))
	}
	f.Add([]byte(`{"capabilities":{"extensions":{}},"capabilities":{"extensions":{"org.aurorabot/tool-contract":{"version":1}}}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		clean, agreed := contract.Sanitise(bytes.Clone(params), "capabilities")
		if !json.Valid(params) {
			return
		}
		if !json.Valid(clean) {
			t.Fatalf("%q became %q", params, clean)
		}
		var m struct {
			Capabilities struct{ Extensions map[string]any }
		}
		if json.Unmarshal(clean, &m) != nil || !exactCase(clean) {
			return
		}
		settings, _ := m.Capabilities.Extensions[contract.ToolContract].(map[string]any)
		if decoded := len(settings) == 1 && settings["version"] == 1.0; decoded != agreed {
			t.Fatalf("%q: judged %v, decoded from %q as %v", params, agreed, clean, decoded)
		}
	})
}

// exactCase says that encoding/json, which does not mind the case of a member's name, reads what was meant.
func exactCase(raw []byte) bool {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil {
		return false
	}
	for name, v := range top {
		if strings.EqualFold(name, "capabilities") {
			var caps map[string]json.RawMessage
			if name != "capabilities" || json.Unmarshal(v, &caps) != nil {
				return false
			}
			for name := range caps {
				if strings.EqualFold(name, "extensions") && name != "extensions" {
					return false
				}
			}
		}
	}
	return true
}
