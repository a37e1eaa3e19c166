package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// stdioGrace is how long calls may still run after the client has closed its end, before they are cancelled.
const stdioGrace = 5 * time.Second

var errClosed = errors.New("endpoint is closed")

// ServeStdio serves one export to one client over a pipe, both eras at once (R10.6), as the given principal: a pipe's
// client is who started the process, so there is nothing to authenticate. Nothing but MCP messages is written to out, one
// a line, each in one Write.
//
// It returns nil when in ends, after calls that were running have been answered (for a few seconds) or cancelled; and ctx's
// error when ctx ends or the endpoint is closed. If in is an io.Closer it is closed then, to end a Read that is waiting.
func (e *Endpoint) ServeStdio(ctx context.Context, name string, principal call.Principal, in io.Reader, out io.Writer) error {
	x := e.exports[name]
	if x == nil {
		return fmt.Errorf("export %q does not exist", name)
	}
	if !x.allows(principal.ID) {
		return fmt.Errorf("export %q may not be used by principal %q", name, principal.ID)
	}
	if !e.enter() {
		return errClosed
	}
	defer e.running.Done()

	p := newPipe(e, x, principal, out)
	lines, stopped := make(chan line), make(chan struct{})
	go func() { // ends with in, or at its next line once nobody takes any; see the doc comment for a Read that hangs
		defer close(lines)
		readLines(in, e.o.MaxBody, func(l line) bool {
			select {
			case lines <- l:
				return true
			case <-stopped:
				return false
			}
		})
	}()
	defer close(stopped)

	err := p.serve(ctx, lines)
	if err != nil {
		if c, ok := in.(io.Closer); ok {
			_ = c.Close() // only to end the reader
		}
	}
	p.end(err)
	return err
}

// serve takes lines until they end (nil) or it is told to stop.
func (p *pipe) serve(ctx context.Context, lines <-chan line) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.e.closing:
			return errClosed
		case <-p.broken:
			return fmt.Errorf("write to the client: %w", p.writeError())
		case l, ok := <-lines:
			if !ok {
				return nil
			}
			p.take(l)
		}
	}
}

// line is one line of input; tooLong says that it went beyond the bound and was skipped.
type line struct {
	b       []byte
	tooLong bool
}

// readLines hands out lines, without their ends and never an empty one, until take says no or in ends. Each line has
// memory of its own.
func readLines(in io.Reader, limit int64, take func(line) bool) {
	r := bufio.NewReaderSize(in, 64<<10)
	var l line
	for {
		piece, err := r.ReadSlice('\n')
		if !l.tooLong {
			if int64(len(l.b)+len(piece)) > limit+2 {
				l = line{tooLong: true}
			} else {
				l.b = append(l.b, piece...)
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.b = trimLine(l.b)
		if (len(l.b) > 0 || l.tooLong) && !take(l) {
			return
		}
		l = line{}
		if err != nil {
			return
		}
	}
}

func trimLine(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r' || b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// take reads one line as a message and sees to it. It blocks while the client does not read what is written to it.
func (p *pipe) take(l line) {
	if l.tooLong {
		p.refuse(nil, failure(0, codeInvalidRequest, "Invalid request: the message is too large"))
		return
	}
	f, err := content.ParseFrame(l.b, content.FrameLimits{Size: p.e.o.MaxBody})
	if err != nil {
		fe, ok := errors.AsType[*content.FrameError](err)
		if !ok {
			fe = &content.FrameError{Fault: content.FaultSyntax, Reason: "no valid JSON"}
		}
		p.e.refused("malformed", p.principal.ID, quoted(fe.Reason))
		p.refuse(fe.ID, frameAnswer(fe))
		return
	}
	switch {
	case f.Kind == content.Notification && f.Method == noteCancelled:
		p.cancelled(&f)
	case f.Kind == content.Notification:
		if p.legacy != nil && f.Method == noteInitialized {
			p.legacy.deliver(&jsonrpc.Request{Method: f.Method, Params: []byte("{}")})
		}
	case f.Kind != content.Request:
		p.asked.answer(&f)
	case saysModern(&f):
		p.takeModern(&f)
	default:
		p.takeLegacy(&f)
	}
}
