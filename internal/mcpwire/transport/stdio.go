package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// StdioOptions say how a child is started and what is borne from it. Zero values select the defaults.
type StdioOptions struct {
	Command string
	Args    []string
	Dir     string   // "" : the gateway's own
	Env     []string // complete; see [ChildEnv]. nil: empty
	Secrets []string // values that are made unreadable in what the child writes to stderr

	MaxMessage   int64               // bytes of one line; 16 MiB
	Frames       content.FrameLimits // its Size is MaxMessage
	CloseTimeout time.Duration       // the whole ladder of stdin, TERM and KILL; 5 s
	WriteTimeout time.Duration       // one write that the child does not take ends the connection (F-18); 30 s
	Queue        int                 // requests that wait for the pipe; 1024

	// What is borne before the connection is given up (F-22, F-24, F-29). Messages in order pay it back bit by bit.
	NoiseLines int // lines on stdout that are no message; 20
	NoiseBytes int // and their bytes; 4 KiB
	Violations int // messages that break the protocol; 10
	Strays     int // answers that nobody waits for; 50

	Logger *slog.Logger // nil: none

	// OnNotification takes every notification in wire order, before any later answer is delivered. It runs on the reading
	// goroutine: it must not block, and params are valid until it returns.
	OnNotification func(method string, params []byte)
	// OnRequest takes requests of the server while no SDK session is attached; nobody answers them. The same rules hold.
	OnRequest func(id []byte, method string, params []byte)
}

func (o *StdioOptions) setDefaults() {
	setDefault(&o.MaxMessage, 16<<20)
	o.Frames.Size = o.MaxMessage
	setDefault(&o.CloseTimeout, 5*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	setDefault(&o.Queue, 1024)
	setDefault(&o.NoiseLines, 20)
	setDefault(&o.NoiseBytes, 4<<10)
	setDefault(&o.Violations, 10)
	setDefault(&o.Strays, 50)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// StdioCarrier carries requests over the pipes of one child process. One goroutine writes and one reads; a third keeps
// the child's last words on stderr, a fourth holds the thread that the child was forked from, and a fifth ends it all.
type StdioCarrier struct {
	opts StdioOptions
	log  *slog.Logger
	proc *process

	stdin, stdout, stderr *os.File
	queue                 chan *exchange
	tail                  *stderrTail
	sdk                   atomic.Pointer[sdkConn]

	done       chan struct{} // closed by finish
	gone       chan struct{} // closed when everything that was started has ended
	readerDone chan struct{}
	workers    sync.WaitGroup
	replies    atomic.Int64 // refusals of the server's requests that wait for the pipe
	closeBound atomic.Int64 // of the ladder; Close may shorten it

	mu        sync.Mutex // guards what follows
	err       error      // why it ended; nil while it lives
	pending   map[string]*exchange
	abandoned map[string]struct{} // sent, and given up by their callers: an answer is late, not stray

	counters
}

var _ Carrier = (*StdioCarrier)(nil)

// errClosed is the end that the gateway itself asked for.
var errClosed = errors.New("closed by the gateway")

// StartStdio starts a child and carries requests to it. It does not wait for the child to be ready. An error is a
// [*SpawnError] or ctx's.
func StartStdio(ctx context.Context, o StdioOptions) (*StdioCarrier, error) {
	o.setDefaults()
	cmd, err := newCommand(ctx, &o)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	closeFiles := func() {
		for _, f := range files {
			f.Close()
		}
	}
	var inodes []uint64
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles()
			return nil, spawnError(o.Command, err)
		}
		files = append(files, r, w)
		inodes = append(inodes, pipeInode(r))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	proc, err := startProcess(cmd, inodes)
	if err != nil {
		closeFiles()
		return nil, spawnError(o.Command, err)
	}
	for _, i := range []int{0, 3, 5} {
		files[i].Close()
	}
	c := &StdioCarrier{
		opts: o, log: o.Logger, proc: proc,
		stdin: files[1], stdout: files[2], stderr: files[4],
		queue: make(chan *exchange, o.Queue), tail: newStderrTail(o.Secrets, o.Logger),
		done: make(chan struct{}), gone: make(chan struct{}), readerDone: make(chan struct{}),
		pending: map[string]*exchange{}, abandoned: map[string]struct{}{},
	}
	c.closeBound.Store(int64(o.CloseTimeout))
	c.workers.Go(c.writeLoop)
	c.workers.Go(c.readLoop)
	c.workers.Go(func() { c.tail.copyFrom(c.stderr) })
	go c.supervise()
	return c, nil
}

// drainGrace is how long what a dead child has left in its pipe is still read, while somebody else may hold the pipe open.
const drainGrace = 500 * time.Millisecond

// supervise waits for the first reason to end, and then ends everything within the bound, whatever calls are open.
func (c *StdioCarrier) supervise() {
	defer close(c.gone)
	select {
	case <-c.proc.exited:
		waitEither(c.readerDone, c.done, drainGrace)
		c.finish(fmt.Errorf("the server process ended: %s", c.proc.exitText()))
	case <-c.readerDone:
		if c.proc.waitFor(drainGrace / 2) {
			c.finish(fmt.Errorf("the server process ended: %s", c.proc.exitText()))
		} else {
			c.finish(errors.New("the server closed its output"))
		}
	case <-c.done:
	}
	c.proc.stop(func() { c.stdin.Close() }, time.Duration(c.closeBound.Load()))
	waitEither(c.readerDone, nil, drainGrace/5)
	c.stdin.Close()
	c.stdout.Close()
	c.stderr.Close()
	ended := make(chan struct{})
	go func() { c.workers.Wait(); close(ended) }()
	waitEither(ended, nil, time.Second) // a platform whose pipes cannot be interrupted must not hold up the end
}

func waitEither(a, b <-chan struct{}, bound time.Duration) {
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-a:
	case <-b:
	case <-t.C:
	}
}

// finish ends the connection once: every open request fails now, with its delivery as marked.
func (c *StdioCarrier) finish(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = cause
	open := c.pending
	c.pending = nil
	close(c.done)
	c.mu.Unlock()
	for _, x := range open {
		x.fail(lost(x, cause))
	}
	if sdk := c.sdk.Load(); sdk != nil {
		sdk.Close()
	}
	c.log.Debug("stdio connection ended", "pid", c.proc.pid, "cause", cause.Error())
}

func lost(x *exchange, cause error) *Fault {
	if x.withdraw() {
		return &Fault{Code: call.CodeProviderUnavailable, Detail: cause.Error()}
	}
	return &Fault{Code: call.CodeProviderLost, Detail: cause.Error()}
}

// Done implements [Carrier].
func (c *StdioCarrier) Done() <-chan struct{} { return c.done }

// Err implements [Carrier].
func (c *StdioCarrier) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close implements [Carrier]. A deadline of ctx shortens the ladder; the process group is gone when it returns.
func (c *StdioCarrier) Close(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline), 100*time.Millisecond)
		c.closeBound.Store(min(c.closeBound.Load(), int64(left)))
	}
	c.finish(errClosed)
	<-c.gone
	return nil
}
