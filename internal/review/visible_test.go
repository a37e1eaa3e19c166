package review

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// what hides is shown.
func TestA11_Visible(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"plain text, 1 + 1":            "plain text, 1 + 1",
		"größe 日本 🙂":                   "größe 日本 🙂",
		`C:\temp`:                      `C:\\temp`,
		"a\nb\tc\r":                    `a\nb\tc\r`,
		"\x1b[2Jgone":                  `\u{001B}[2Jgone`,
		"\u202egnp.exe":                `\u{202E}gnp.exe`,
		"zero\u200bwidth\u00adsoft":    `zero\u{200B}width\u{00AD}soft`,
		"hi\U000E0041\U000E0042":       `hi\u{E0041}\u{E0042}`,
		"\u3164\uffa0\u115f\u2800":     `\u{3164}\u{FFA0}\u{115F}\u{2800}`,
		"x\ufe0f\U000E0100":            `x\u{FE0F}\u{E0100}`,
		"\ue000\u2028\u2062\u00a0":     `\u{E000}\u{2028}\u{2062}\u{00A0}`,
		"bad\xff\xc3":                  `bad\xFF\xC3`,
		"e\u0301e\u0301":               "e\u0301e\u0301",
		"z\u0301\u0301\u0301\u0301":    "z\u0301\u0301\u0301" + `\u{0301}`,
		"\u0301starts":                 `\u{0301}starts`,
		"\u009b31m":                    `\u{009B}31m`,
		"real \ufffd is not a bad one": "real \ufffd is not a bad one",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"short", 10, "short"}, {"exactly ten", 11, "exactly ten"}, {"somewhat longer", 10, "somewh …"}, {"\x00\x00\x00", 11, `\u{0000 …`}, {"x", 0, ""}, {"日本語日本語", 11, "日本 …"}} {
		got := Clip(c.in, c.limit)
		if len(got) > c.limit {
			t.Errorf("Clip(%q, %d) has %d bytes", c.in, c.limit, len(got))
		}
		if got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// Nothing hides in the result, it is one line of valid UTF-8, and it can be read back to exactly one text.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a\\u{200B}", "a\u200b", "\xff\\xFF", "\x1b]8;;http://x\x07", "\U000E0001"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		v := Visible(s)
		if !utf8.ValidString(v) || strings.ContainsAny(v, "\n\r\t\x1b") {
			t.Fatalf("Visible(%+q) = %+q", s, v)
		}
		for _, r := range v {
			if Hidden(r) || unicode.IsControl(r) {
				t.Fatalf("%U is hidden in %+q", r, v)
			}
		}
		if back, ok := unescape(v); !ok || back != s {
			t.Fatalf("Visible(%+q) = %+q reads back as %+q", s, v, back)
		}
		limit &= 0xff
		if c := Clip(s, limit); len(c) > limit || !utf8.ValidString(c) {
			t.Fatalf("Clip(%+q, %d) = %+q", s, limit, c)
		}
	})
}

// unescape is the inverse of Visible.
func unescape(v string) (string, bool) {
	var b strings.Builder
	for v != "" {
		if v[0] != '\\' {
			b.WriteByte(v[0])
			v = v[1:]
			continue
		}
		if len(v) < 2 {
			return "", false
		}
		kind := v[1]
		v = v[2:]
		switch kind {
		case '\\':
			b.WriteByte('\\')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'x':
			b.WriteByte(hexValue(v[:2]))
			v = v[2:]
		case 'u':
			digits, rest, ok := strings.Cut(v[1:], "}")
			if !ok {
				return "", false
			}
			n := rune(0)
			for _, c := range digits {
				n = n<<4 | rune(hexValue("0"+string(c)))
			}
			b.WriteRune(n)
			v = rest
		}
	}
	return b.String(), true
}

func hexValue(s string) (n byte) {
	for _, c := range []byte(s) {
		if n <<= 4; c <= '9' {
			n |= c - '0'
		} else {
			n |= c - 'A' + 10
		}
	}
	return n
}
