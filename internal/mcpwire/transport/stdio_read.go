package transport

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// counters are what operators see of a connection.
type counters struct {
	noise, violations, late, notifications atomic.Int64
	lastViolation                          atomic.Pointer[string]
}

// reader is the state of the reading goroutine alone.
type reader struct {
	lines  *lineReader
	noise  budget
	broken budget
	strays budget
}

// noiseRepaid is how many lines of noise one message in order makes good: a server that prints a few lines a call is
// badly written, not dangerous.
const noiseRepaid = 4

// readLoop takes messages off the child's stdout until it ends or too much of it is none.
func (c *StdioCarrier) readLoop() {
	defer close(c.readerDone)
	r := &reader{
		lines:  newLineReader(c.stdout, c.opts.MaxMessage),
		noise:  budget{lines: c.opts.NoiseLines, bytes: c.opts.NoiseBytes},
		broken: budget{lines: c.opts.Violations},
		strays: budget{lines: c.opts.Strays},
	}
	for {
		line, err := r.lines.next()
		switch {
		case err == nil:
		case err == errTooLong:
			c.tooLong(r)
			continue
		case err == errEndless:
			c.finish(fmt.Errorf("the server wrote a line without end (beyond %d bytes)", r.lines.endless()))
			_, _ = io.Copy(io.Discard, c.stdout) // so that it is not blocked while it is being ended
			return
		default:
			if len(bytes.TrimSpace(line)) > 0 { // a line that was cut by the end
				c.violation(r, line, "cut by the end of the stream")
			}
			return
		}
		c.take(r, line)
	}
}

// take handles one line.
func (c *StdioCarrier) take(r *reader, line []byte) {
	kind := classifyLine(&line)
	switch kind {
	case lineBlank:
		return
	case lineNoise:
		c.counters.noise.Add(1)
		if !r.noise.spend(len(line)) {
			c.finish(fmt.Errorf("the server writes to stdout what is no MCP message (more than %d lines or %d bytes)",
				c.opts.NoiseLines, c.opts.NoiseBytes))
		}
		return
	}
	f, err := content.ParseFrame(line, c.opts.Frames)
	if err != nil {
		c.violation(r, line, err.Error())
		return
	}
	switch f.Kind {
	case content.Notification:
		c.notifications.Add(1)
		if c.live() && c.opts.OnNotification != nil {
			c.opts.OnNotification(f.Method, f.Params)
		}
	case content.Request:
		c.reverseRequest(r, f, line)
	case content.Response, content.ErrorResponse:
		c.respond(r, f, line)
	}
	r.noise.repay(noiseRepaid)
	r.broken.repay(1)
}

func (c *StdioCarrier) live() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// respond hands an answer to the request that waits for it: the first valid one, and to no other request (F-24).
func (c *StdioCarrier) respond(r *reader, f content.Frame, line []byte) {
	id, ok := content.IDString(f.ID)
	if !ok {
		if sdk := c.sdk.Load(); sdk == nil || !sdk.offerAnswer(f, line) {
			c.stray(r, f.ID)
		}
		return
	}
	c.mu.Lock()
	x := c.pending[id]
	early := x != nil && x.state.Load() == exchangeQueued // the id was guessed: nobody can answer what was not asked
	_, late := c.abandoned[id]
	if x != nil && !early {
		delete(c.pending, id)
	}
	if late {
		delete(c.abandoned, id)
	}
	c.mu.Unlock()
	switch {
	case x != nil && !early:
		x.delivery.Confirmed()
		resp := Response{Result: f.Result, Error: f.Error}
		if !r.lines.owned {
			resp.Result = bytes.Clone(f.Result)
			if f.Error != nil {
				e := *f.Error
				e.Data = bytes.Clone(e.Data)
				resp.Error = &e
			}
		}
		r.strays.repay(1)
		if x.onAnswer != nil {
			x.onAnswer(f.Result)
		}
		x.deliver(resp)
	case late:
		c.late.Add(1)
	default:
		c.stray(r, f.ID)
	}
}

func (c *StdioCarrier) stray(r *reader, id []byte) {
	c.note("answer to no open request, id " + quoteShort(id))
	if !r.strays.spend(0) {
		c.finish(fmt.Errorf("the server answers what was not asked (more than %d times)", c.opts.Strays))
	}
}

// reverseRequest is a request of the server. Only the legacy era has them: its SDK session answers pings, and the rest was
// not declared and is refused (R14.1). Nobody answers in the modern era (S-022, S-049). What waits is bounded, and what is
// beyond is dropped (F-28).
func (c *StdioCarrier) reverseRequest(r *reader, f content.Frame, line []byte) {
	if sdk := c.sdk.Load(); sdk != nil {
		if f.Method == "ping" && !sdk.offerRequest(line) || f.Method != "ping" && !c.refuse(f.ID) {
			c.note("too many open requests of the server, dropped " + quoteShort([]byte(f.Method)))
		}
		return
	}
	c.note("request of the server, not answered: " + quoteShort([]byte(f.Method)))
	if c.live() && c.opts.OnRequest != nil {
		c.opts.OnRequest(f.ID, f.Method, f.Params)
	}
}

// violation drops a line that should have been a message. If it can be seen which of our requests it was meant to
// answer, that one fails now instead of at its deadline; its neighbours live.
func (c *StdioCarrier) violation(r *reader, line []byte, why string) {
	c.note(why + ": " + quoteShort(line))
	var scan envelopeScan
	scan.feed(line)
	c.failAnswered(&scan, &Fault{Code: call.CodeProtocolError, Detail: why})
	if !r.broken.spend(0) {
		c.finish(fmt.Errorf("the server breaks the protocol (more than %d messages; the last: %s)", c.opts.Violations, why))
	}
}

func (c *StdioCarrier) tooLong(r *reader) {
	why := fmt.Sprintf("message larger than %d bytes", c.opts.MaxMessage)
	c.note(why)
	c.failAnswered(&r.lines.scan, &Fault{Code: call.CodeResultTooLarge, Detail: why})
	if !r.broken.spend(0) {
		c.finish(fmt.Errorf("the server breaks the protocol (more than %d messages; the last: %s)", c.opts.Violations, why))
	}
}

func (c *StdioCarrier) failAnswered(scan *envelopeScan, f *Fault) {
	id, ok := scan.answers()
	if !ok {
		return
	}
	c.mu.Lock()
	x := c.pending[id]
	if x != nil && x.state.Load() == exchangeQueued {
		x = nil
	}
	if x != nil {
		delete(c.pending, id)
	}
	delete(c.abandoned, id)
	c.mu.Unlock()
	if x != nil {
		x.fail(f)
	}
}

func (c *StdioCarrier) note(violation string) {
	c.violations.Add(1)
	c.lastViolation.Store(&violation)
	c.log.Debug("protocol violation on stdout", "pid", c.proc.pid, "violation", violation)
}

// StdioStats are counters of one carrier.
type StdioStats struct {
	PID                                    int
	Noise, Violations, Late, Notifications int64
	Open                                   int
	LastViolation                          string
	Stderr                                 []string
	// Exit says how the process ended ("exit status 0", "signal: killed"), and Stopped what that took: stdin, TERM, KILL, or ""
	// if it ended by itself. Both are "" while it lives.
	Exit, Stopped string
}

// Stats reads the counters.
func (c *StdioCarrier) Stats() StdioStats {
	s := StdioStats{
		PID: c.proc.pid, Noise: c.counters.noise.Load(), Violations: c.violations.Load(), Late: c.late.Load(),
		Notifications: c.notifications.Load(), Stderr: c.tail.lines(),
	}
	if v := c.lastViolation.Load(); v != nil {
		s.LastViolation = *v
	}
	s.Exit, s.Stopped = c.proc.ended()
	c.mu.Lock()
	s.Open = len(c.pending)
	c.mu.Unlock()
	return s
}
