package transport

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is kept and logged of a child's stderr (F-20).
const (
	stderrKept     = 64 << 10
	stderrLine     = 4 << 10 // of one line in the log
	stderrLogBurst = 100     // lines, then as many a second as follows
	stderrLogRate  = 10
)

// stderrTail keeps the last of what a child writes to stderr. It never blocks the child: reading costs a copy, and all
// else is done when somebody looks.
type stderrTail struct {
	secrets *strings.Replacer // nil: none
	longest int               // bytes of the longest secret
	log     *slog.Logger

	mu      sync.Mutex // guards what follows
	ring    []byte
	next    int
	wrapped bool

	// The rest belongs to the copying goroutine.
	line    []byte
	cut     bool
	allowed float64
	last    time.Time
	dropped int
}

// newStderrTail makes the secrets unreadable wherever they appear. Values that are too short to be secrets would tear
// holes into every text, and are left alone.
func newStderrTail(secrets []string, log *slog.Logger) *stderrTail {
	t := &stderrTail{log: log, allowed: stderrLogBurst}
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 6 {
			pairs = append(pairs, s, "[redacted]")
			t.longest = max(t.longest, len(s))
		}
	}
	if pairs != nil {
		t.secrets = strings.NewReplacer(pairs...)
	}
	return t
}

func (t *stderrTail) copyFrom(r io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		t.keep(buf[:n])
		t.logLines(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *stderrTail) keep(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring == nil && len(b) > 0 {
		t.ring = make([]byte, stderrKept)
	}
	for len(b) > 0 {
		n := copy(t.ring[t.next:], b)
		b = b[n:]
		if t.next += n; t.next == len(t.ring) {
			t.next, t.wrapped = 0, true
		}
	}
}

// lines returns what is kept, line by line, scrubbed.
func (t *stderrTail) lines() []string {
	t.mu.Lock()
	var b []byte
	if t.wrapped {
		b = append(append(b, t.ring[t.next:]...), t.ring[:t.next]...)
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:] // the first line may begin within a secret
		} else {
			b = b[min(t.longest, len(b)):]
		}
	} else {
		b = append(b, t.ring[:t.next]...)
	}
	t.mu.Unlock()
	text := t.scrub(string(b))
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = visible(strings.TrimSuffix(l, "\r"))
	}
	return lines
}

func (t *stderrTail) scrub(s string) string {
	if t.secrets == nil {
		return s
	}
	return t.secrets.Replace(s)
}

// logLines hands whole lines to the log, cut and slowed down to what a log can bear.
func (t *stderrTail) logLines(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		if room := stderrLine + t.longest - len(t.line); len(part) > room {
			part, t.cut = part[:max(room, 0)], true
		}
		t.line = append(t.line, part...)
		if i < 0 {
			return
		}
		b = b[i+1:]
		t.logLine()
		t.line, t.cut = t.line[:0], false
	}
}

func (t *stderrTail) logLine() {
	now := time.Now() // the pace of a log, nothing that is decided upon
	t.allowed = min(stderrLogBurst, t.allowed+now.Sub(t.last).Seconds()*stderrLogRate)
	t.last = now
	if t.allowed < 1 {
		t.dropped++
		return
	}
	t.allowed--
	text := t.scrub(string(t.line))
	if t.cut { // the cut may have gone through a secret
		text = text[:max(0, min(len(text), stderrLine)-t.longest)]
	}
	if text = visible(strings.TrimSpace(text)); text == "" {
		return
	}
	attrs := []any{"line", text}
	if t.dropped > 0 {
		attrs = append(attrs, "lines_dropped", t.dropped)
		t.dropped = 0
	}
	t.log.Info("provider stderr", attrs...)
}

// visible shows control and format characters instead of sending them to a terminal.
func visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\x1b':
			b.WriteString("␛")
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case hidden(r):
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}
