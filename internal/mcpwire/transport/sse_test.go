package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type seenEvent struct {
	name, data, id string
}

func readAllEvents(r io.Reader, maxEvent, maxTotal int64) ([]seenEvent, error) {
	e := newEventReader(r, maxEvent, maxTotal)
	defer e.release()
	var out []seenEvent
	for {
		ev, err := e.next()
		if err != nil {
			return out, err
		}
		out = append(out, seenEvent{ev.name, string(ev.data), ev.id})
	}
}

func TestEventReader(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []seenEvent
	}{
		{"one", "data: a\n\n", []seenEvent{{data: "a"}}},
		{"no blank", "data:a\n\n", []seenEvent{{data: "a"}}},
		{"one blank goes", "data:  a\n\n", []seenEvent{{data: " a"}}},
		{"crlf", "event: message\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []seenEvent{{"message", "a", ""}, {data: "b"}}},
		{"cr", "data: a\r\rdata: b\r\r", []seenEvent{{data: "a"}, {data: "b"}}},
		{"several lines", "data: a\ndata: b\ndata\ndata: c\n\n", []seenEvent{{data: "a\nb\n\nc"}}},
		{"comments", ": x\n\n:\ndata: a\n: y\n\n", []seenEvent{{data: "a"}}},
		{"unknown fields", "foo: 1\nbar\ndata: a\n\n", []seenEvent{{data: "a"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []seenEvent{{data: "a"}}},
		{"only an id", "id: 7\n\ndata: a\n\n", []seenEvent{{id: "7"}, {data: "a"}}},
		{"NUL in id", "id: 7\x00\ndata: a\n\n", []seenEvent{{data: "a"}}},
		{"cut off", "data: a\n\ndata: b\n", []seenEvent{{data: "a"}}},
		{"cut off in a line", "data: a\n\ndata: b", []seenEvent{{data: "a"}}},
		{"nothing", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in)), iotest.DataErrReader(strings.NewReader(tc.in))} {
				got, err := readAllEvents(r, 1<<20, 0)
				if err != io.EOF {
					t.Errorf("got error %v, want EOF", err)
				}
				if len(got) != len(tc.want) {
					t.Fatalf("got %q, want %q", got, tc.want)
				}
				for i := range got {
					if got[i] != tc.want[i] {
						t.Errorf("got %q, want %q", got, tc.want)
					}
				}
			}
		})
	}
}

// F-21, F-31: events, streams and what never becomes an event are bounded.
func TestF21_EventBounds(t *testing.T) {
	endless := func(s string) io.Reader { return io.MultiReader(strings.NewReader("data: x\n"), &repeat{s: s}) }
	for _, tc := range []struct {
		name  string
		r     io.Reader
		total int64
		want  error
	}{
		{"line", strings.NewReader("data: " + strings.Repeat("x", 5000)), 0, errEventTooLarge},
		{"many lines", strings.NewReader(strings.Repeat("data: xxxxxxxx\n", 1000)), 0, errEventTooLarge},
		{"comments inside an event", endless(": x\n"), 0, errEventTooLarge},
		{"fields inside an event", endless("foo: bar\n"), 0, errEventTooLarge},
		{"comments between events", &repeat{s: ": x\n\n"}, 100_000, errStreamTooLarge},
		{"events", &repeat{s: "data: x\n\n"}, 100_000, errStreamTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := readAllEvents(tc.r, 4096, tc.total); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

type repeat struct {
	s    string
	rest string
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = strings.Repeat(r.s, 100)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// However a stream is cut into reads, the same events come out of it.
func FuzzEventReader(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\n\r\nid: 1\r\r", ":\n\xef\xbb\xbfdata\n\n", "\r\n\r\ndata:x\r\rdata:y\n\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > sseChunk/2 {
			return // what is buffered at once depends on the cuts, and so does its bound
		}
		a, errA := readAllEvents(strings.NewReader(s), 512, 0)
		b, errB := readAllEvents(iotest.OneByteReader(strings.NewReader(s)), 512, 0)
		if len(a) != len(b) || (errA == io.EOF) != (errB == io.EOF) {
			t.Fatalf("%q: %q %v, byte by byte %q %v", s, a, errA, b, errB)
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("%q: %q, byte by byte %q", s, a, b)
			}
		}
	})
}
