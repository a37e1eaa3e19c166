package cli

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary/ostiary"
)

func TestF59_Clean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":             {"a b\tc\nd", "a b\tc\nd"},
		"colour":            {"\x1b[31;1mred\x1b[0m", "red"},
		"title":             {"\x1b]0;owned\x07after", "after"},
		"link":              {"\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\", "here"},
		"clipboard":         {"\x1b]52;c;aGk=\x07x", "x"},
		"device control":    {"\x1bP1$r0m\x1b\\x", "x"},
		"c1 csi":            {"\u009b31mred", "red"},
		"c1 osc":            {"\u009d0;t\u009cx", "x"},
		"charset":           {"\x1b(0x", "x"},
		"reset":             {"\x1bcx", "x"},
		"unfinished osc":    {"\x1b]0;never\nnext", "\nnext"},
		"lone escape":       {"a\x1b", "a"},
		"carriage return":   {"good\revil", "goodevil"},
		"backspace":         {"abc\b\b\bxyz", "abcxyz"},
		"bell and zero":     {"a\a\x00b", "ab"},
		"bidi override":     {"a\u202egnp.exe", "agnp.exe"},
		"bidi isolate":      {"a\u2066b\u2069", "ab"},
		"zero width":        {"a\u200b\u200c\u200d\ufeff\u2060b", "ab"},
		"tags":              {"a\U000e0041\U000e007fb", "ab"},
		"variation":         {"a\ufe0f\U000e0100b", "ab"},
		"filler":            {"a\u3164\u115fb", "ab"},
		"line separator":    {"a\u2028b\u2029c", "abc"},
		"invalid UTF-8":     {"a\xff\xfeb", "a\uFFFDb"},
		"escape in invalid": {"\xff\x1b[31mx", "\uFFFDx"},
		"chinese":           {"守门人", "守门人"},
		"accents":           {"e\u0301", "e\u0301"},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("%s: clean(%q) = %q, want %q", name, c.in, got, c.want)
		}
	}
}

func TestF59_CleanLineIsBounded(t *testing.T) {
	if got := cleanLine(strings.Repeat("x", 1<<20), 10); got != "xxxxxxxxx…" {
		t.Errorf("got %q", got)
	}
	if got := cleanLine(" a \n\n b ", 10); got != "a b" {
		t.Errorf("got %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"\x1b[31m", "\x1b]8;;x\x1b\\", "\x1bP\x1b\x1b\\", "\u009b", "a\u202eb", "\xff\x1b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) {
			t.Errorf("not UTF-8: %q", got)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%U is left in %q", r, got)
			}
		}
		if again := clean(got); again != got {
			t.Errorf("not stable: %q then %q", got, again)
		}
		if n := utf8.RuneCountInString(cleanLine(s, 20)); n > 20 {
			t.Errorf("a line of %d characters", n)
		}
	})
}

// JSON on a terminal is as inert as text, and means what it meant.
func TestA10_InertJSON(t *testing.T) {
	for in, want := range map[string]string{
		`"plain 守门人 e` + "\u0301" + `"`: `"plain 守门人 e` + "\u0301" + `"`,
		"\"a\u009b2Kb\u007f\"":          `"a\u009b2Kb\u007f"`,
		"\"a\u202eb\u200bc\"":           `"a\u202eb\u200bc"`,
		"\"a\U000e0041\"":               `"a\udb40\udc41"`,
		"{\n\t\"\u2066\": [1.0, \"\"]}": "{\n\t\"" + `\u2066` + "\": [1.0, \"\"]}",
	} {
		if got := string(inert([]byte(in))); got != want {
			t.Errorf("inert(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzInert(f *testing.F) {
	f.Add("\u009b31m\x7f\u202e\U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]string
		out := inert(b)
		if err := errors.Join(json.Unmarshal(b, &before), json.Unmarshal(out, &after)); err != nil || !maps.Equal(before, after) {
			t.Errorf("%q became %q: %v", b, out, err)
		}
		if clean(string(out)) != string(out) {
			t.Errorf("%q is not inert", out)
		}
	})
}

// A record whose content was pruned says so, and by which record.
func TestTombstoneIsShown(t *testing.T) {
	var out strings.Builder
	a := newApp(strings.NewReader(""), &out, io.Discard, func(string) (string, bool) { return "", false })
	r := ostiary.LedgerRecord{Seq: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: "call.intent", Call: "c1", Pruned: 42}
	if err := a.printRecord(r, false); err != nil || !strings.HasSuffix(out.String(), "call.intent          c1  (pruned, on record 42)\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := a.printRecord(r, true); err != nil || !strings.Contains(out.String(), `"body":null`) || !strings.Contains(out.String(), `"pruned":42`) {
		t.Errorf("%q, %v", out.String(), err)
	}
	report := ostiary.LedgerReport{OK: true, First: 1, Last: 9, Records: 9, Tombstones: 3, Unvouched: 1}
	out.Reset()
	if err := a.printReport(report, false); err != nil || !strings.Contains(out.String(), "3 tombstones (1 of them made by records that are not here), ") {
		t.Errorf("%q, %v", out.String(), err)
	}
	if got := pruneText(ostiary.PruneReport{Pruned: 1, Kept: 2, Removed: []string{"a.db"}, Left: []string{"b\x1b.db"}}, false); !strings.Contains(got, "pruned: 1 record before") ||
		!strings.Contains(got, "2 as old are still needed") || !strings.Contains(got, "removed: a.db") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
