package adminapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ostiary/ostiary"
)

// Server answers on a socket until Close.
type Server struct {
	srv  *http.Server
	path string
	stop func() // ends what only waits
	done chan struct{}
}

// Gateway is what is served: everything that an operator can ask and decide.
type Gateway interface {
	ostiary.Operations
	ostiary.Review
	ostiary.World
}

// Serve answers for a gateway on the data directory's socket. The directory must be the operator's alone, as the store makes
// it.
func Serve(dataDir string, gw Gateway, logger *slog.Logger) (*Server, error) {
	path, err := socketPath(dataDir)
	if err != nil {
		return nil, err
	}
	// Whoever holds the data directory's lock owns the socket: one that is there is left over from a gateway that died.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	closing, stop := context.WithCancel(context.Background())
	s := &Server{path: path, stop: stop, done: make(chan struct{}), srv: &http.Server{Handler: routes(gw, logger, closing), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}}
	go func() {
		defer close(s.done)
		if err := s.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("admin socket", "err", err)
		}
	}()
	return s, nil
}

// Close ends the server and waits for it. It is safe to call twice.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	err := s.srv.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.srv.Close())
	}
	<-s.done
	_ = os.Remove(s.path)
	return err
}
