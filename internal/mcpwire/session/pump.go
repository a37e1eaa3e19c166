package session

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
)

// pump hands a call's progress and log messages to its caller. A slow caller must not hold up the connection, and a fast
// server must not flood the caller: progress between two deliveries is a few at the most, the latest among them (S-060), and
// log messages wait in a bounded queue.
type pump struct {
	token      string
	onProgress func(call.Progress)
	onLog      func(call.LogMessage)
	level      int // least severe that is wanted

	wake, stop, stopped chan struct{}

	mu      sync.Mutex // guards what follows
	ended   bool
	last    []byte // the highest progress so far
	waiting []call.Progress
	logs    []call.LogMessage
	dropped int
}

const (
	pumpPace     = 10 * time.Millisecond // between two deliveries
	pumpProgress = 16                    // progress that waits; what is beyond takes the place of the last
	pumpLogs     = 256                   // log messages that wait; what is beyond is dropped
)

func newPump(token string, c *Call) *pump {
	return &pump{
		token: token, onProgress: c.Progress, onLog: c.Log, level: levelOf(c.LogLevel),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

func (p *pump) run() {
	defer close(p.stopped)
	pace := time.NewTimer(time.Hour)
	defer pace.Stop()
	for {
		select {
		case <-p.wake:
			p.deliver()
		case <-p.stop:
			p.deliver()
			return
		}
		pace.Reset(pumpPace)
		select {
		case <-pace.C:
		case <-p.stop:
			p.deliver()
			return
		}
	}
}

func (p *pump) deliver() {
	p.mu.Lock()
	progress, logs := p.waiting, p.logs
	p.waiting, p.logs = nil, nil
	p.mu.Unlock()
	for _, m := range logs {
		p.onLog(m)
	}
	for _, pr := range progress {
		p.onProgress(pr)
	}
}

// close takes nothing any more: what a server says of a call after its answer is not of that call.
func (p *pump) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// end delivers what has come and returns when nothing will be delivered any more.
func (p *pump) end() {
	p.close()
	close(p.stop)
	<-p.stopped
}

func (p *pump) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// progress takes one notification; it reports whether it was in order.
func (p *pump) progress(params []byte) bool {
	value := content.Member(params, "progress")
	if p.onProgress == nil || !isNumber(value) {
		return isNumber(value)
	}
	pr := call.Progress{Progress: bytes.Clone(value)}
	if total := content.Member(params, "total"); isNumber(total) {
		pr.Total = bytes.Clone(total)
	}
	pr.Message, _ = content.String(content.Member(params, "message"))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return true
	}
	if p.last != nil && !greater(value, p.last) {
		return false
	}
	p.last = pr.Progress
	if len(p.waiting) == pumpProgress {
		p.waiting = p.waiting[:pumpProgress-1]
	}
	p.waiting = append(p.waiting, pr)
	p.signal()
	return true
}

func (p *pump) message(params []byte) {
	if p.onLog == nil {
		return
	}
	m := call.LogMessage{Data: bytes.Clone(content.Member(params, "data"))}
	m.Level, _ = content.String(content.Member(params, "level"))
	m.Logger, _ = content.String(content.Member(params, "logger"))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended || levelOf(m.Level) < p.level:
	case len(p.logs) >= pumpLogs:
		p.dropped++
	default:
		p.logs = append(p.logs, m)
		p.signal()
	}
}

func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// greater compares two JSON numbers. Integers are compared exactly; a number that no float can hold is greater than none.
func greater(a, b []byte) bool {
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	if errX == nil && errY == nil {
		return x > y
	}
	f, errF := strconv.ParseFloat(string(a), 64)
	g, errG := strconv.ParseFloat(string(b), 64)
	return errF == nil && errG == nil && f > g
}

// openCalls are the calls that want notifications.
type openCalls struct {
	mu sync.Mutex // guards pumps
	// pumps by token. Few calls want any, so it stays small.
	pumps map[string]*pump
}

func (c *openCalls) add(p *pump) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pumps == nil {
		c.pumps = map[string]*pump{}
	}
	c.pumps[p.token] = p
}

func (c *openCalls) remove(p *pump) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pumps, p.token)
}

func (c *openCalls) byToken(token string) *pump {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pumps[token]
}

// onlyLogger is the one open call that asked for log messages; nil if there are none or several.
func (c *openCalls) onlyLogger() *pump {
	c.mu.Lock()
	defer c.mu.Unlock()
	var only *pump
	for _, p := range c.pumps {
		if p.onLog == nil {
			continue
		}
		if only != nil {
			return nil
		}
		only = p
	}
	return only
}

// levels of log messages, from the least severe.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func levelOf(name string) int { return max(0, slices.Index(levels, name)) }

// logLevel is what a legacy server was last asked to send.
type logLevel struct {
	mu  sync.Mutex // guards set
	set int        // index+1 of the level; 0: never asked
}

// askForLogs sets the level of a legacy server that has logging, once, and again only if a call wants more than the ones
// before it. A modern server reads the level in each request.
func (s *Session) askForLogs(ctx context.Context, level string) {
	want := levelOf(level) + 1
	if s.opts.LegacyEvents { // one level holds for all that the server says, and events are said at this one
		want = min(want, levelOf(eventLevel)+1)
	}
	if s.agreed().Modern || !s.logging {
		return
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if s.logs.set != 0 && s.logs.set <= want {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cancelNotice)
	defer cancel()
	s.logs.set = want // whatever comes of it: a server that refuses is not asked before each call
	if _, err := s.carrier.Do(ctx, &transport.Request{
		ID: s.newID(), Method: "logging/setLevel",
		Params: content.NewObject(nil).String("level", levels[want-1]).End(),
	}); err != nil {
		s.log.Debug("set the log level", "error", err.Error())
	}
}
