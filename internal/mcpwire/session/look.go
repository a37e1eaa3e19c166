package session

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// maxInitialize bounds what is kept of the answer to initialize.
const maxInitialize = 1 << 20

// initializeLook keeps the raw answer to the SDK's initialize on its way through: what a server declares is judged by its
// own bytes (R4.1), which the SDK's types round.
type initializeLook struct {
	next http.RoundTripper

	mu   sync.Mutex // guards kept
	kept bytes.Buffer
}

// RoundTrip implements [http.RoundTripper]. Headers are not touched.
func (l *initializeLook) RoundTrip(req *http.Request) (*http.Response, error) {
	initialize := false
	if req.Method == http.MethodPost && req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			head, _ := io.ReadAll(io.LimitReader(body, maxInitialize))
			body.Close()
			f, err := content.ParseFrame(head, content.FrameLimits{})
			initialize = err == nil && f.Method == "initialize"
		}
	}
	resp, err := l.next.RoundTrip(req)
	if err == nil && initialize {
		resp.Body = &lookBody{ReadCloser: resp.Body, look: l}
	}
	return resp, err
}

type lookBody struct {
	io.ReadCloser
	look *initializeLook
}

func (b *lookBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.look.mu.Lock()
	defer b.look.mu.Unlock()
	if b.look.kept.Len()+n <= maxInitialize {
		b.look.kept.Write(p[:n])
	}
	return n, err
}

// result is the raw result of initialize; nil if it cannot be told.
func (l *initializeLook) result() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, err := content.ParseFrame(bytes.TrimSpace(l.kept.Bytes()), content.FrameLimits{}); err == nil {
		return bytes.Clone(f.Result)
	}
	// An event stream: the first event that holds a response is it.
	var data []byte
	for line := range bytes.Lines(l.kept.Bytes()) {
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			data = append(data, '\n')
		}
		if len(line) != 0 {
			continue
		}
		if f, err := content.ParseFrame(bytes.TrimSpace(data), content.FrameLimits{}); err == nil && f.Result != nil {
			return bytes.Clone(f.Result)
		}
		data = data[:0]
	}
	return nil
}
