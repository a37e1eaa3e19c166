package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// maxBody bounds one request; arguments of a call are the largest part of it.
const maxBody = 32 << 20

// paths has the route of each operation, by the name of its method. A request carries the operation's parameters as one
// JSON value, and its answer is the result, or a [fault].
var paths = map[string]string{
	"Status": "/v1/status", "Tools": "/v1/tools", "Call": "/v1/call",
	"Admissions": "/v1/admissions", "Admit": "/v1/admit", "Quarantined": "/v1/quarantine", "Release": "/v1/quarantine/release", "Lock": "/v1/lock",
	"Approvals": "/v1/approvals", "Approval": "/v1/approval", "Decide": "/v1/approval/decide", "Revoke": "/v1/approval/revoke",
	"Taints": "/v1/taints", "DropTaint": "/v1/taint/drop",
	"Evidence": "/v1/evidence", "EvidenceContent": "/v1/evidence/content", "DecideEvidence": "/v1/evidence/decide",
	"WorldHead": "/v1/world/head", "WorldScopes": "/v1/world/scopes", "WorldDelta": "/v1/world/delta", "WorldNext": "/v1/world/next",
	"Prune": "/v1/ledger/prune", "Explain": "/v1/explain",
}

// The parameters of operations that have more than one, or none that is a type of its own.
type (
	none         struct{}
	ofProvider   struct{ Provider string }
	ofTool       struct{ Provider, Tool, Reason string }
	allOrWaiting struct{ All bool }
	ofID         struct{ ID string }
	onEvidence   struct{ ID, Verb, Reason string }
	ofScopes     struct{ Scopes []call.Scope }
	afterScope   struct {
		After call.Scope
		Limit int
	}
	afterSequence struct {
		Scope call.Scope
		After int64
		Limit int
	}
	sinceFrontier struct {
		Seen call.Frontier
		Wait time.Duration
	}

	// calling is a call that can be cancelled, under an id that its caller has made up.
	calling struct {
		ostiary.CallRequest
		Cancel string `json:"cancel,omitempty"`
	}
)

// cancelPath cancels a call that another request waits for; that one is answered with what became of it. It says whether
// there is such a call.
const cancelPath = "/v1/call/cancel"

// calls are those in work that can be cancelled.
type calls struct {
	mu   sync.Mutex // guards open
	open map[string]context.CancelFunc
}

// call places a call for as long as it is not cancelled.
func (c *calls) call(gw Gateway) func(context.Context, calling) (ostiary.CallReply, error) {
	return func(ctx context.Context, r calling) (ostiary.CallReply, error) {
		if r.Cancel == "" {
			return gw.Call(ctx, r.CallRequest)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c.mu.Lock()
		_, taken := c.open[r.Cancel]
		if !taken {
			c.open[r.Cancel] = cancel
		}
		c.mu.Unlock()
		if taken {
			return ostiary.CallReply{}, errors.New("a call is open under this id")
		}
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.open, r.Cancel)
		}()
		return gw.Call(ctx, r.CallRequest)
	}
}

func (c *calls) cancel(_ context.Context, p ofID) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel, ok := c.open[p.ID]
	if ok {
		cancel()
	}
	return ok, nil
}

// routes has one route an operation. What only waits for something to happen ends with an empty answer when the server is
// about to close.
func routes(gw Gateway, logger *slog.Logger, closing context.Context) http.Handler {
	mux := http.NewServeMux()
	serve(mux, logger, "Status", func(ctx context.Context, _ none) (ostiary.Status, error) { return gw.Status(ctx) })
	serve(mux, logger, "Tools", func(ctx context.Context, _ none) ([]ostiary.ToolInfo, error) { return gw.Tools(ctx) })
	open := &calls{open: map[string]context.CancelFunc{}}
	serve(mux, logger, "Call", open.call(gw))
	serveAt(mux, logger, cancelPath, open.cancel)
	serve(mux, logger, "Admissions", func(ctx context.Context, p ofProvider) ([]ostiary.Admission, error) {
		return gw.Admissions(ctx, p.Provider)
	})
	serve(mux, logger, "Admit", gw.Admit)
	serve(mux, logger, "Quarantined", func(ctx context.Context, _ none) ([]ostiary.QuarantineInfo, error) { return gw.Quarantined(ctx) })
	serve(mux, logger, "Release", func(ctx context.Context, p ofTool) (ostiary.QuarantineInfo, error) {
		return gw.Release(ctx, p.Provider, p.Tool, p.Reason)
	})
	serve(mux, logger, "Lock", func(ctx context.Context, _ none) ([]byte, error) { return gw.Lock(ctx) })

	serve(mux, logger, "Approvals", func(ctx context.Context, p allOrWaiting) ([]ostiary.ApprovalInfo, error) {
		return gw.Approvals(ctx, p.All)
	})
	serve(mux, logger, "Approval", func(ctx context.Context, p ofID) (ostiary.ApprovalInfo, error) { return gw.Approval(ctx, p.ID) })
	serve(mux, logger, "Decide", gw.Decide)
	serve(mux, logger, "Revoke", gw.Revoke)

	serve(mux, logger, "Taints", func(ctx context.Context, _ none) ([]ostiary.TaintInfo, error) { return gw.Taints(ctx) })
	serve(mux, logger, "DropTaint", gw.DropTaint)

	serve(mux, logger, "Evidence", gw.Evidence)
	serve(mux, logger, "EvidenceContent", func(ctx context.Context, p ofID) (ostiary.EvidenceInfo, error) {
		return gw.EvidenceContent(ctx, p.ID)
	})
	serve(mux, logger, "DecideEvidence", func(ctx context.Context, p onEvidence) (ostiary.EvidenceInfo, error) {
		return gw.DecideEvidence(ctx, p.ID, p.Verb, p.Reason)
	})

	serve(mux, logger, "Prune", gw.Prune)
	serve(mux, logger, "Explain", gw.Explain)
	serve(mux, logger, "WorldHead", func(ctx context.Context, p ofScopes) (call.Frontier, error) { return gw.WorldHead(ctx, p.Scopes) })
	serve(mux, logger, "WorldScopes", func(ctx context.Context, p afterScope) (ostiary.WorldScopes, error) {
		return gw.WorldScopes(ctx, p.After, p.Limit)
	})
	serve(mux, logger, "WorldDelta", func(ctx context.Context, p afterSequence) (ostiary.WorldDelta, error) {
		return gw.WorldDelta(ctx, p.Scope, p.After, p.Limit)
	})
	serve(mux, logger, "WorldNext", func(ctx context.Context, p sinceFrontier) (ostiary.WorldNews, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(closing, cancel)()
		news, err := gw.WorldNext(ctx, p.Seen, p.Wait)
		if err != nil && closing.Err() != nil {
			return ostiary.WorldNews{Commits: []call.Commit{}, Frontier: p.Seen}, nil
		}
		return news, err
	})
	return mux
}

// serve makes the route of one operation.
func serve[P, R any](mux *http.ServeMux, logger *slog.Logger, operation string, do func(context.Context, P) (R, error)) {
	serveAt(mux, logger, paths[operation], do)
}

func serveAt[P, R any](mux *http.ServeMux, logger *slog.Logger, path string, do func(context.Context, P) (R, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var p P
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil {
			http.Error(w, "the request cannot be read", http.StatusBadRequest)
			return
		}
		if _, err := d.Token(); err != io.EOF {
			http.Error(w, "the request has more than one value", http.StatusBadRequest)
			return
		}
		v, err := do(r.Context(), p)
		reply(w, logger, v, err)
	})
}

// fault is what an operation's error looks like on the socket.
type fault struct {
	Error string        `json:"error"`
	Kind  ostiary.Fault `json:"kind,omitempty"`
}

func reply(w http.ResponseWriter, logger *slog.Logger, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if err != nil {
		status = http.StatusUnprocessableEntity
		v = fault{Error: err.Error(), Kind: ostiary.FaultOf(err)}
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
