package main

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
)

// serveStdio answers one message a line until the input ends. Answers to
// messages that came together leave together.
func (s *server) serveStdio(in io.Reader, out io.Writer) error {
	br := bufio.NewReaderSize(in, 256<<10)
	w := &lines{w: out}
	var long []byte
	for {
		line, err := br.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			long = append(long, line...)
			line, err = br.ReadSlice('\n')
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.stdioMessage(w, line)
		}
		long = long[:0]
		if br.Buffered() == 0 || err != nil {
			if ferr := w.flush(); ferr != nil {
				return ferr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) stdioMessage(w *lines, line []byte) {
	m, err := parse(line)
	if err != nil {
		w.add(func(out []byte) []byte { return failure(out, nil, -32700, "malformed JSON") })
		return
	}
	if !m.isRequest {
		return
	}
	modern := string(m.metaVersion) == mcp.ModernVersion
	if d, steps, ok := m.slow(); ok {
		go s.stdioSlow(w, bytes.Clone(m.id), bytes.Clone(m.token), d, steps, modern)
		return
	}
	if modern && m.is("subscriptions/listen") {
		w.add(func(out []byte) []byte { return acknowledged(out, &m) })
		return
	}
	w.add(func(out []byte) []byte { out, _ = s.answer(out, &m, modern); return out })
}

func (s *server) stdioSlow(w *lines, id, token []byte, d time.Duration, steps int, modern bool) {
	m := &message{id: id, token: token}
	if token == nil {
		time.Sleep(d)
	} else {
		for i := range steps {
			time.Sleep(d / time.Duration(steps))
			w.add(func(out []byte) []byte { return progress(out, m, i+1, steps) })
			w.flush()
		}
	}
	w.add(func(out []byte) []byte { return slept(out, m, d, modern) })
	w.flush()
}

// lines gathers output and writes it in whole lines.
type lines struct {
	mu  sync.Mutex
	buf []byte
	w   io.Writer
}

func (l *lines) add(f func([]byte) []byte) {
	l.mu.Lock()
	l.buf = append(f(l.buf), '\n')
	l.mu.Unlock()
}

func (l *lines) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.w.Write(l.buf)
	if l.buf = l.buf[:0]; cap(l.buf) > 4<<20 {
		l.buf = nil
	}
	return err
}
