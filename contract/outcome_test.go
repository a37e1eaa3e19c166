package contract_test

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

// R4.8, R4.6: what each end of a call says of its effect, with both kinds of handler, in both eras, where the contract was
// agreed and where it was not. An effect that may have begun is never reported as failed.
func TestR4_8_OutcomeOfACall(t *testing.T) {
	ends := []struct{ how, raw, typed string }{
		{"ok", "fine", "fine"},
		{"unknown", "unknown: the line went dead|ask again later", "unknown: the line went dead\nask again later"},
		{"unknown error", "unknown: post: whether it had an effect is unknown", "same"},
		{"failed", "failed: no such group", "same"},
		{"begun, failed", "failed: rolled back", "same"},
		{"begun, no effect", "failed: rolled back: nothing was changed", "same"},
		{"begun, both", "unknown: odd: nothing was changed: whether it had an effect is unknown", "same"},
		{"error", "wire error", "failed: no"},
		{"begun, error", "unknown: unexpected EOF", "same"},
		{"begun, wire error", "unknown: bad", "same"},
		{"begun, deadline", "unknown: context deadline exceeded", "same"},
		{"isError", "failed: sick", "failed: sick"},
		{"begun, isError", "unknown: sick", "unknown: sick"},
		{"panic", "unknown: internal error", "same"},
		{"by hand", "unknown: sick", "same"},
		{"by hand, badly", "unknown: sick", "unknown: sick"},
	}
	ext := contract.New(contract.Options{Logger: logger(t)})
	server := newServer(ext)
	for _, revision := range []string{"2026-07-28", old} {
		for _, agreed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s agreed=%v", revision, agreed), func(t *testing.T) {
				var offered []string
				if agreed {
					offered = []string{contract.ToolContract}
				}
				cs := client(t, connected(t, ext, server, nil), revision, offered...)
				for _, e := range ends {
					if e.typed == "same" {
						e.typed = e.raw
					}
					for tool, want := range map[string]string{"raw": e.raw, "typed": e.typed} {
						if got := called(t, cs, tool, e.how, agreed); got != want {
							t.Errorf("%s %q:\n got %s\nwant %s", tool, e.how, got, want)
						}
					}
				}
			})
		}
	}
}

const inWords = "It is unknown whether this call had an effect. Look before doing it again."

// called tells a result in one line, and fails if it is unknown in a way that its reader would not understand.
func called(t *testing.T, cs *mcp.ClientSession, tool, how string, agreed bool) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"how": how, "group": "1"}})
	if err != nil {
		return "wire error"
	}
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	meta, ok := r.Meta[contract.ToolContract]
	spelled := slices.Contains(texts, inWords)
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == inWords })
	words := strings.Join(texts, "|")
	switch {
	case !ok && !r.IsError:
		return "fine"
	case !ok && !spelled:
		return "failed: " + words
	case r.StructuredContent != nil:
		t.Errorf("%s %q has structured content: %v", tool, how, r.StructuredContent)
	case !r.IsError:
		t.Errorf("%s %q is unknown without isError: who does not know the contract takes it for a success", tool, how)
	case agreed && (spelled || !reflect.DeepEqual(meta, map[string]any{"status": "unknown"})):
		t.Errorf("%s %q: meta %v, texts %q", tool, how, meta, texts)
	case !agreed && (ok || !spelled):
		t.Errorf("%s %q: meta %v without an agreement", tool, how, meta)
	}
	return "unknown: " + words
}

// R4.8: the same over the pipes of a child process, with events, in both eras.
func TestR4_8_Stdio(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"2026-07-28", old} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "CONTRACT_TEST_SERVER=1")
			cmd.Stderr = t.Output()
			events := make(chan string, 10)
			cs := client(t, tap{&mcp.CommandTransport{Command: cmd}, func(r *jsonrpc.Request) { events <- r.Method }}, revision, contract.ToolContract, contract.WorldEvents)
			if got := called(t, cs, "typed", "begun, error", true); got != "unknown: unexpected EOF" {
				t.Error(got)
			}
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "typed", Arguments: map[string]any{"how": "event", "group": "1"}})
			if err != nil || r.IsError || !reflect.DeepEqual(r.StructuredContent, map[string]any{"n": 1.0}) {
				t.Fatalf("%+v, %v", r, err)
			}
			want := contract.EventMethod
			if revision == old {
				want = "notifications/message"
			}
			if got := <-events; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
