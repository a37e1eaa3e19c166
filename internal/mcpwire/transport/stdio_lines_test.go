package transport

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// Whatever a stream holds and however it is cut into reads: the lines are those of the stream, in order, byte for byte;
// each that is too long is reported once in its place, and nothing beyond the bound is ever returned.
func TestLineReaderProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const limit = 70_000 // more than the reader's own buffer
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(65_000, 66_000), rapid.IntRange(69_990, 70_010), rapid.IntRange(100_000, 300_000)), 0, 6).Draw(t, "lengths")
		var stream bytes.Buffer
		var want []string
		for i, n := range lengths {
			line := strings.Repeat(string(rune('a'+i)), n)
			stream.WriteString(line + "\n")
			want = append(want, line)
		}
		var src io.Reader = &stream
		switch rapid.IntRange(0, 2).Draw(t, "cut") {
		case 1:
			src = iotest.HalfReader(src)
		case 2:
			src = iotest.DataErrReader(src)
		}
		r := newLineReader(src, limit)
		for i, w := range want {
			line, err := r.next()
			switch {
			case len(w) > limit:
				if err != errTooLong {
					t.Fatalf("line %d of %d bytes: %v", i, len(w), err)
				}
			case err != nil || string(line) != w:
				t.Fatalf("line %d: got %d bytes, %v; want %d", i, len(line), err, len(w))
			}
		}
		if line, err := r.next(); err != io.EOF || len(line) != 0 {
			t.Fatalf("at the end: %q, %v", line, err)
		}
	})
}

// F-19: a line without end costs no more memory than the bound, and is given up.
func TestLineReaderEndless(t *testing.T) {
	t.Parallel()
	r := newLineReader(endlessReader{}, 100_000)
	if _, err := r.next(); !errors.Is(err, errEndless) {
		t.Fatal(err)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// FuzzEnvelopeScan: the hint agrees with the strict parser on every valid answer, and never panics on anything.
func FuzzEnvelopeScan(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"g1","result":{"id":"g2","a":[{"id":"g3"}]}}`,
		`{"result":{"text":"\"id\":\"g9\""},"jsonrpc":"2.0","id":"g1"}`,
		`{"jsonrpc":"2.0","id":"g1","error":{"code":1,"message":"id"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":"a\"b","result":{}}`,
		`{"jsonrpc":"2.0","id":"g1","result":{"x":`, `{"id":"g1","id":"g2","result":{}}`, `[{"id":"g1","result":{}}]`, `}}}{"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, parts envelopeScan
		whole.feed(b)
		for i := range b {
			parts.feed(b[i : i+1])
		}
		id, ok := whole.answers()
		if id2, ok2 := parts.answers(); id != id2 || ok != ok2 {
			t.Fatalf("in one piece %q %v, in many %q %v", id, ok, id2, ok2)
		}
		frame, err := content.ParseFrame(b, content.FrameLimits{})
		if err != nil || frame.Kind != content.Response && frame.Kind != content.ErrorResponse {
			return
		}
		if want, isString := content.IDString(frame.ID); isString && ok && id != want {
			t.Fatalf("got %q, the strict parser says %q", id, want)
		}
	})
}

// FuzzClassifyLine: what is taken for a message begins like one, and nothing but blanks and a mark is ever cut off.
func FuzzClassifyLine(f *testing.F) {
	for _, s := range []string{"", " \r", "\xef\xbb\xbf{}", "[INFO] x", "[ {", "[]", "listening", "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line := b
		kind := classifyLine(&line)
		if !bytes.Contains(b, line) {
			t.Fatal("the line is not part of what came")
		}
		if (kind == lineBlank) != (len(line) == 0) {
			t.Fatalf("%q is %d", b, kind)
		}
		if kind == lineMessage && line[0] != '{' && line[0] != '[' {
			t.Fatalf("%q taken for a message", b)
		}
		if _, err := content.ParseFrame(bytes.TrimSpace(b), content.FrameLimits{}); err == nil && kind != lineMessage {
			t.Fatalf("message %q taken for %d", b, kind)
		}
	})
}

// FuzzVisible: nothing that a terminal would obey or hide gets through.
func FuzzVisible(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31mred\x1b[0m\u202e\u200b\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range visible(s) {
			if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("%q leaves %U", s, r)
			}
		}
	})
}

// The tail is the last of what was written, and no secret shows, wherever the ring wraps.
func TestStderrTailProperty(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	rapid.Check(t, func(t *rapid.T) {
		tail := newStderrTail([]string{secret}, discard)
		filler := rapid.IntRange(0, 200_000).Draw(t, "filler")
		line := strings.Repeat("x", rapid.IntRange(0, 200).Draw(t, "width")) + secret + "\n"
		var all strings.Builder
		for all.Len() <= filler {
			all.WriteString(line)
		}
		text := all.String()
		for len(text) > 0 {
			n := min(len(text), rapid.IntRange(1, 20_000).Draw(t, "chunk"))
			tail.keep([]byte(text[:n]))
			text = text[n:]
		}
		got := strings.Join(tail.lines(), "\n")
		if strings.Contains(got, "hunter2-h") || strings.Contains(got, "2-hunter2") {
			t.Fatal("a secret shows")
		}
		if len(got) > stderrKept*2 {
			t.Fatalf("%d bytes kept", len(got))
		}
	})
}
