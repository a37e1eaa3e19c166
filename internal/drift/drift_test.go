package drift

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
)

// R6.6: two definitions that differ in one exact integer differ in their digest, though RFC 8785 would round them alike.
func TestR6_6_DigestKeepsIntegersExact(t *testing.T) {
	a, err := Digest([]byte(`{"maximum":9007199254740993}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Digest([]byte(`{"maximum":9007199254740992}`))
	if err != nil {
		t.Fatal(err)
	}
	if a == b {
		t.Fatal("2^53+1 and 2^53 have one digest")
	}
}

func TestDigestIgnoresOrderAndSpaceAlone(t *testing.T) {
	base, _ := Digest([]byte(`{"a":1,"b":"x"}`))
	for name, c := range map[string]struct {
		raw  string
		same bool
	}{
		"order":     {`{"b":"x","a":1}`, true},
		"space":     {"{ \"a\" : 1 ,\n\"b\":\"x\"}", true},
		"escape":    {`{"a":1,"b":"\u0078"}`, true},
		"value":     {`{"a":2,"b":"x"}`, false},
		"new":       {`{"a":1,"b":"x","c":null}`, false},
		"case":      {`{"A":1,"b":"x"}`, false},
		"invisible": {"{\"a\":1,\"b\":\"x\u200b\"}", false},
	} {
		got, err := Digest([]byte(c.raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if (got == base) != c.same {
			t.Errorf("%s: same digest = %v, want %v", name, got == base, c.same)
		}
	}
	for _, bad := range []string{`{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":`, ``} {
		if _, err := Digest([]byte(bad)); err == nil {
			t.Errorf("Digest(%q) succeeded", bad)
		}
	}
}

func TestR6_6_Compare(t *testing.T) {
	d, _ := Digest([]byte(`{}`))
	tool := &call.Descriptor{ID: "aur.mcp.p.t", SchemaDigest: d}
	if err := Compare(tool, call.Digest{}); err != nil {
		t.Errorf("nothing expected: %v", err)
	}
	if err := Compare(tool, d); err != nil {
		t.Errorf("as expected: %v", err)
	}
	err := Compare(tool, call.Digest{1})
	if m, ok := errors.AsType[*Mismatch](err); !ok || m.Tool != tool.ID {
		t.Errorf("changed: got %v", err)
	}
}

func TestR2_6_DiffNamesWhatChanged(t *testing.T) {
	before := map[string][]byte{
		"gone": []byte(`{"name":"gone"}`),
		"same": []byte(`{"name":"same","a":1}`),
		"desc": []byte(`{"name":"desc","description":"reads"}`),
		"deep": []byte(`{"name":"deep","inputSchema":{"type":"object","properties":{"a":{}}}}`),
		"anno": []byte(`{"name":"anno","annotations":{"readOnlyHint":true}}`),
	}
	after := map[string][]byte{
		"same": []byte(`{ "a":1, "name":"same"}`),
		"desc": []byte(`{"name":"desc","description":"reads and sends"}`),
		"deep": []byte(`{"name":"deep","inputSchema":{"type":"object","properties":{"a":{},"b":{}}},"icons":[]}`),
		"anno": []byte(`{"name":"anno","annotations":{"readOnlyHint":false}}`),
		"new":  []byte(`{"name":"new"}`),
	}
	want := []Change{
		{Changed, "anno", []string{"/annotations/readOnlyHint"}},
		{Changed, "deep", []string{"/icons", "/inputSchema/properties"}},
		{Changed, "desc", []string{"/description"}},
		{Kind: Removed, Tool: "gone"},
		{Kind: Added, Tool: "new"},
	}
	if d := cmp.Diff(want, Diff(before, after)); d != "" {
		t.Error(d)
	}
	if got := Diff(before, before); got != nil {
		t.Errorf("a listing differs from itself: %v", got)
	}
}

// A canonical form is canonical: it is its own canonical form, and equal values have equal digests.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.0,1e2,9007199254740993]}`, `"\u0078"`, `{"a":1,"a":2}`, `-0`, strings.Repeat("[", 300)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := bytes.Clone(raw)
		c, err := Canonical(raw)
		if !bytes.Equal(in, raw) {
			t.Fatal("Canonical wrote to its input")
		}
		if err != nil {
			return
		}
		again, err := Canonical(c)
		if err != nil || !bytes.Equal(c, again) {
			t.Fatalf("canonical form %q of %q is not its own: %q, %v", c, raw, again, err)
		}
		if changes := Diff(map[string][]byte{"t": raw}, map[string][]byte{"t": c}); changes != nil {
			t.Fatalf("%q and its canonical form differ: %v", raw, changes)
		}
	})
}
