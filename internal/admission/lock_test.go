package admission

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R6.11: a lock file is the same bytes for the same catalogs, whatever their order, and comes back as it was.
func TestR6_11_LockFile(t *testing.T) {
	a, b := aTool(t, "a", ""), aTool(t, "repo/\"b\"\u202e", "")
	other := Offer{Provider: "apps", Instructions: "x", ToolContract: true}
	l, err := LockOf([]Offer{offer(t, "Be kind.", b, a), other})
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.Render()
	if err != nil {
		t.Fatal(err)
	}
	m, err := LockOf([]Offer{other, offer(t, "Be kind.", a, b)})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := m.Render(); string(again) != string(text) {
		t.Errorf("another order gives\n%s\nand not\n%s", again, text)
	}
	back, err := ParseLock(text)
	if err != nil || !reflect.DeepEqual(back, l) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for _, want := range []string{"version = 1\n", "\n[[provider]]\npackage      = \"apps\"\n", "name       = \"repo/\\\"b\\\"\\U0000202E\"\n", a.DescriptorDigest.String()} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Index(string(text), `"apps"`) > strings.Index(string(text), `"files"`) {
		t.Error("not sorted")
	}
}

func TestR6_11_CheckLocked(t *testing.T) {
	a, b := aTool(t, "a", ""), aTool(t, "b", "")
	locked := offer(t, "Be kind.", a, b)
	l, _ := LockOf([]Offer{locked})
	described := aTool(t, "a", `,"description":"x"`)
	agreed := offer(t, "Be kind.", a, b)
	agreed.ToolContract = true
	schema := *described
	schema.SchemaDigest = call.Digest{1}
	for name, c := range map[string]struct {
		now  []Offer
		want string
	}{
		"equal":            {[]Offer{offer(t, "Be kind.", b, a)}, ""},
		"origin differs":   {[]Offer{{Provider: "files", Instructions: "Be kind.", Tools: locked.Tools}}, ""},
		"provider gone":    {nil, "provider files: is locked, but not offered"},
		"provider new":     {[]Offer{locked, {Provider: "more"}}, "provider more: is offered, but not locked"},
		"instructions":     {[]Offer{offer(t, "", a, b)}, "provider files: instructions is"},
		"contract":         {[]Offer{agreed}, "provider files: tool-contract is negotiated where it is not locked"},
		"tool gone":        {[]Offer{offer(t, "Be kind.", b)}, "provider files, tool a: is locked, but not offered"},
		"tool new":         {[]Offer{offer(t, "Be kind.", a, b, aTool(t, "c", ""))}, "provider files, tool c: is offered, but not locked"},
		"definition":       {[]Offer{offer(t, "Be kind.", described, b)}, "provider files, tool a: descriptor is"},
		"definition, args": {[]Offer{offer(t, "Be kind.", &schema, b)}, "provider files, tool a: schema is"},
	} {
		d, err := CheckLocked(l, c.now)
		if err != nil || c.want == "" && len(d) > 0 || c.want != "" && (len(d) != 1 || !strings.HasPrefix(d[0].String(), c.want)) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

func TestParseLockFaults(t *testing.T) {
	sum := `"sha256:` + strings.Repeat("0a", 32) + `"`
	provider := "version = 1\n[[provider]]\npackage = \"p\"\ninstructions = " + sum + "\n"
	for text, want := range map[string]string{
		"":                               "version 0",
		"version = 2":                    "version 2",
		"version = 1\nmore = 1":          "line 2: more: a lock has no such key",
		"version = 1\n[[provider]]\na =": "line 3, column",
		"version = 1\n[[provider]]\n":    "no digest",
		provider + provider[12:]:         "twice",
		provider + "[[provider.tool]]":   "is no digest",
		provider + "[[provider.tool]]\nname = \"a\"\nschema = " + sum + "\ndescriptor = \"sha256:00\"":                        "is no digest",
		provider + "[[provider.tool]]\nname = \"a\"\nschema = " + sum + "\ndescriptor = " + strings.ToUpper(sum):              "is no digest",
		provider + "[[provider.tool]]\nname = \"\"\nschema = " + sum + "\ndescriptor = " + sum:                                "without a name",
		strings.Replace(provider, `"p"`, `"P"`, 1):                                                                            "lower-case",
		provider + strings.Repeat("[[provider.tool]]\nname = \"a\"\nschema = "+sum+"\ndescriptor = "+sum+"\n", 2):             "twice",
		provider + "[[provider.tool]]\nname = \"a\"\nschema = \"sha256:" + strings.Repeat("00", 32) + "\"\ndescriptor=" + sum: "lacks a digest",
	} {
		if _, err := ParseLock([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// What can be read is written and read again as the same.
func FuzzParseLock(f *testing.F) {
	sum := `"sha256:` + strings.Repeat("0a", 32) + `"`
	f.Add([]byte("version = 1\n[[provider]]\npackage = \"p\"\ninstructions = " + sum + "\n[[provider.tool]]\nname = \"a\\u202e\"\nschema = " + sum + "\ndescriptor = " + sum))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLock(text)
		if err != nil {
			return
		}
		out, err := l.Render()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseLock(out)
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%s\nreads back as %+v, %v", out, back, err)
		}
	})
}
