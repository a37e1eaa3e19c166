package exampleserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxInFlight bounds the requests of one connection that are being answered; more wait in the pipe.
const maxInFlight = 1024

// ServeStdio serves one client that speaks over in and out, one message a line, until in ends or ctx does. A read of in
// that is still waiting when ctx ends is left to its own end: nothing can interrupt one of a terminal or an inherited pipe.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	if err := opts.validate(); err != nil {
		return fmt.Errorf("example server: %w", err)
	}
	if err := wait(ctx, opts.StartDelay); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &pipe{s: newServer(opts), out: out, session: newSession(), end: cancel, slots: make(chan struct{}, maxInFlight)}
	c.session.changes = c.s.subscribe()
	c.running.Go(func() { c.announce(ctx) })
	read := make(chan error, 1)
	go func() { read <- c.read(ctx, in) }()
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	cancel(nil)
	c.running.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// pipe is a connection over standard input and output.
type pipe struct {
	s       *server
	session *session
	end     context.CancelCauseFunc
	slots   chan struct{}
	running sync.WaitGroup
	modern  inFlight

	mu  sync.Mutex // guards out: lines are written whole
	out io.Writer
}

func (c *pipe) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		m, fault := parseMessage(bytes.Clone(line))
		if fault != nil {
			if !errors.Is(fault.cause, errResponse) {
				c.write(fault.append(nil, m.id))
			}
			continue
		}
		if !c.message(ctx, m) {
			return nil
		}
	}
	return lines.Err()
}

// message takes one message in. It is false when the connection has ended.
func (c *pipe) message(ctx context.Context, m message) bool {
	meta := m.meta()
	version, versioned := meta.str(metaVersion)
	modern := versioned && c.s.opts.Era.modern()
	open := &c.session.inFlight
	if modern {
		open = &c.modern
	}
	switch {
	case m.id == nil:
		switch m.method {
		case "notifications/initialized":
			c.session.readied.Do(func() { close(c.session.ready) })
		case "notifications/cancelled": // whether its sender is modern cannot be told from it
			c.modern.cancel(&m)
			c.session.inFlight.cancel(&m)
		}
		return true
	case m.method == "initialize" && !modern:
		b, fault := c.s.initialize(&m)
		if fault != nil {
			b = fault.append(nil, m.id)
		} else {
			c.session.open()
		}
		c.write(b)
		return true
	case modern:
		if fault := c.s.checkModern(version, meta); fault != nil {
			c.write(fault.append(nil, m.id))
			return true
		}
	case !c.session.isOpen() && m.method != "ping":
		c.write(c.unopened(&m).append(nil, m.id))
		return true
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	one, cancel := context.WithCancel(ctx)
	if !open.add(m.id, cancel) {
		cancel()
		<-c.slots
		c.write((&rpcError{code: codeInvalidRequest, message: "the id is in use"}).append(nil, m.id))
		return true
	}
	c.running.Go(func() {
		defer func() { cancel(); <-c.slots }()
		ex := &exchange{
			message: m, modern: modern, session: c.session, meta: meta,
			notify: c.write, junk: c.writeRaw, cut: func() { c.end(ErrDied) },
		}
		b := c.s.handle(one, ex)
		open.remove(m.id) // before the answer: its reader may use the id again at once
		if b != nil {
			c.write(b)
		}
	})
	return true
}

// unopened is the answer to a request that neither says its version nor follows an initialize.
func (c *pipe) unopened(m *message) *rpcError {
	switch {
	case c.s.opts.Era == EraModern:
		return invalidParams("_meta: " + metaVersion + " is missing")
	case m.method == "server/discover":
		return &rpcError{code: codeMethodNotFound, message: "method not found: server/discover"}
	}
	return &rpcError{code: codeInvalidRequest, message: "initialize comes first"}
}

// checkModern checks what the modern era asks of every request.
func (s *server) checkModern(version string, meta object) *rpcError {
	if version != modernVersions[0] {
		return s.unsupportedVersion(version)
	}
	if _, ok := meta[metaCapabilities]; !ok || meta[metaCapabilities].Kind() != '{' {
		return invalidParams("_meta: " + metaCapabilities + " is missing")
	}
	return nil
}

// announce tells a legacy client when the list of tools changes.
func (c *pipe) announce(ctx context.Context) {
	defer c.s.unsubscribe(c.session.changes)
	select {
	case <-ctx.Done():
		return
	case <-c.session.ready:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.session.changes:
			c.write(notification("notifications/tools/list_changed", nil))
		}
	}
}

func (c *pipe) write(b []byte) { c.writeRaw(append(b, '\n')) }

func (c *pipe) writeRaw(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(b); err != nil {
		c.end(fmt.Errorf("write: %w", err))
	}
}
