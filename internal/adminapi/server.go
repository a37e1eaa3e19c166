package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ostiary/ostiary"
)

// maxBody bounds one request; arguments of a call are the largest part of it.
const maxBody = 32 << 20

// Server answers on a socket until Close.
type Server struct {
	srv  *http.Server
	path string
	done chan struct{}
}

// Serve answers for ops on the data directory's socket. The directory must be the operator's alone, as the store makes it.
func Serve(dataDir string, ops ostiary.Operations, logger *slog.Logger) (*Server, error) {
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
	s := &Server{path: path, done: make(chan struct{}), srv: &http.Server{Handler: routes(ops, logger), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}}
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
	err := s.srv.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.srv.Close())
	}
	<-s.done
	_ = os.Remove(s.path)
	return err
}

// routes has one route an operation.
func routes(ops ostiary.Operations, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		v, err := ops.Status(r.Context())
		reply(w, logger, v, err)
	})
	mux.HandleFunc("GET /v1/tools", func(w http.ResponseWriter, r *http.Request) {
		v, err := ops.Tools(r.Context())
		reply(w, logger, v, err)
	})
	mux.HandleFunc("POST /v1/call", func(w http.ResponseWriter, r *http.Request) {
		var req ostiary.CallRequest
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&req); err != nil {
			http.Error(w, "the request cannot be read", http.StatusBadRequest)
			return
		}
		v, err := ops.Call(r.Context(), req)
		reply(w, logger, v, err)
	})
	return mux
}

// fault is what an operation's error looks like on the socket.
type fault struct {
	Error     string `json:"error"`
	Ambiguous bool   `json:"ambiguous,omitempty"` // it was ostiary.ErrAmbiguous
}

func reply(w http.ResponseWriter, logger *slog.Logger, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if err != nil {
		status = http.StatusUnprocessableEntity
		v = fault{Error: err.Error(), Ambiguous: errors.Is(err, ostiary.ErrAmbiguous)}
	}
	body, err := json.Marshal(v)
	if err != nil {
		logger.Error("admin answer", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone is no fault
}
