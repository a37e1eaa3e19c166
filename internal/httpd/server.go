package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/internal/identity"
)

// Options configures a [Server]. Zero values take the default that stands with the field.
type Options struct {
	// Listen is the address, such as "127.0.0.1:7411". Port 0 lets the system choose.
	Listen string
	// Mount says who answers on a path. A path that ends in "/" stands for everything below it.
	Mount map[string]http.Handler
	// Ready says whether the whole start has succeeded, and if not, why. nil: always.
	Ready func() (ok bool, reason string)
	// Fit says whether a server that is ready can do its work now; only the readiness path asks. nil: always.
	Fit func() (ok bool, reason string)
	// Guard checks the credential on every path that nobody mounted, so that a stranger cannot tell which exist (S-033).
	// nil: such paths are 404. What is mounted checks for itself.
	Guard *identity.Guard
	// Perimeter checks Host and Origin on every path, health included. nil: one that allows loopback names alone.
	Perimeter *identity.Perimeter

	ReadHeaderTimeout time.Duration // 5 s
	IdleTimeout       time.Duration // 60 s: a kept-alive connection without a request
	BodyIdle          time.Duration // 10 s: between two pieces of a body
	BodyTotal         time.Duration // 60 s: for the whole body
	WriteIdle         time.Duration // 30 s: for the client to take one piece of an answer
	MaxHeaderBytes    int           // 32 KiB
	MaxConns          int           // 2048; more are closed at once

	Logger *slog.Logger // discarded if nil
	// Now is the clock; deadlines of connections come from it, so it must run.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.ReadHeaderTimeout, 5*time.Second)
	set(&o.IdleTimeout, time.Minute)
	set(&o.BodyIdle, 10*time.Second)
	set(&o.BodyTotal, time.Minute)
	set(&o.WriteIdle, 30*time.Second)
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = 32 << 10
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 2048
	}
	if o.Ready == nil {
		o.Ready = func() (bool, string) { return true, "" }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Server is the gateway's HTTP server. New → Start → Stop; Stop is safe twice and before Start.
type Server struct {
	o        Options
	log      *slog.Logger
	http     *http.Server
	draining atomic.Bool

	mu       sync.Mutex // guards listener, err
	listener net.Listener
	err      error
	done     chan struct{}
	stopOnce sync.Once
}

// New checks the options. It opens nothing.
func New(o Options) (*Server, error) {
	o.setDefaults()
	if o.Perimeter == nil {
		p, err := identity.NewPerimeter(identity.PerimeterOptions{})
		if err != nil {
			return nil, err
		}
		o.Perimeter = p
	}
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return nil, fmt.Errorf("listen address %q: %w", o.Listen, err)
	}
	for path, h := range o.Mount {
		if path == "" || path[0] != '/' || h == nil {
			return nil, fmt.Errorf("mount %q: expected a path and a handler", path)
		}
		if path == healthPath || path == readyPath {
			return nil, fmt.Errorf("mount %q: the path is the server's own", path)
		}
	}
	s := &Server{o: o, log: o.Logger.With("component", "httpd"), done: make(chan struct{})}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // without TLS there is nothing else; h2c would add rapid resets for no gain (F-46)
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: o.ReadHeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    o.MaxHeaderBytes,
		Protocols:         &protocols,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// No WriteTimeout and no ReadTimeout: streams live long. Each write and each read has its own deadline instead.
	}
	return s, nil
}

// Start opens the listener and serves. It returns when connections are taken.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.o.Listen, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.draining.Load() {
		_ = l.Close()
		return errors.New("http server was started or stopped before")
	}
	s.listener = l
	go s.serve(&cappedListener{Listener: l, max: int64(s.o.MaxConns), refused: s.connectionRefused})
	return nil
}

func (s *Server) serve(l net.Listener) {
	defer close(s.done)
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.mu.Lock()
		s.err = fmt.Errorf("serve %s: %w", s.o.Listen, err)
		s.mu.Unlock()
	}
}

func (s *Server) connectionRefused(total int64) {
	if total&(total-1) == 0 { // 1, 2, 4, 8, …: a flood does not flood the log
		s.log.Warn("connection refused: too many are open", "bound", s.o.MaxConns, "refused_so_far", total)
	}
}

// Addr is where the server listens; nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Done is closed when a started server serves no more; Err then says why, nil after Stop.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server ended by itself.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Drain lets running requests go on and answers 503 to new ones.
func (s *Server) Drain() { s.draining.Store(true) }

// Stop drains, waits for running requests until ctx ends, then cuts what is left. Whoever holds streams open (an MCP
// endpoint) should be told to end them first. It returns ctx's error if something had to be cut.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.Drain()
	s.stopOnce.Do(func() {
		if err = s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close()
			err = fmt.Errorf("stop http server: requests were cut: %w", err)
		}
	})
	s.mu.Lock()
	started := s.listener != nil
	s.mu.Unlock()
	if started {
		<-s.done
	}
	return err
}
