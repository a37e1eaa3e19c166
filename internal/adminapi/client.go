package adminapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// ErrNotRunning says that no gateway answers on the data directory.
var ErrNotRunning = errors.New("no gateway is running on this data directory")

// Client asks a running gateway. It implements [ostiary.Operations], [ostiary.Review] and [ostiary.World].
type Client struct{ http *http.Client }

var _ Gateway = (*Client)(nil)

// Dial finds the gateway that runs on a data directory. ErrNotRunning, wrapped: there is none.
func Dial(ctx context.Context, dataDir string) (*Client, error) {
	path, err := socketPath(dataDir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	probe, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := d.DialContext(probe, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	_ = conn.Close() // only to know that somebody listens
	return &Client{&http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", path) },
		DisableCompression: true, Proxy: nil,
	}}}, nil
}

// Status asks for the state of everything.
func (c *Client) Status(ctx context.Context) (ostiary.Status, error) {
	return ask[ostiary.Status](ctx, c, "Status", none{})
}

// Tools asks for every tool.
func (c *Client) Tools(ctx context.Context) ([]ostiary.ToolInfo, error) {
	return ask[[]ostiary.ToolInfo](ctx, c, "Tools", none{})
}

// Admissions asks what waits for an admission, or was decided.
func (c *Client) Admissions(ctx context.Context, provider string) ([]ostiary.Admission, error) {
	return ask[[]ostiary.Admission](ctx, c, "Admissions", ofProvider{provider})
}

// Admit decides on definitions.
func (c *Client) Admit(ctx context.Context, d ostiary.AdmissionDecision) ([]ostiary.Admission, error) {
	return ask[[]ostiary.Admission](ctx, c, "Admit", d)
}

// Quarantined asks what is out of use.
func (c *Client) Quarantined(ctx context.Context) ([]ostiary.QuarantineInfo, error) {
	return ask[[]ostiary.QuarantineInfo](ctx, c, "Quarantined", none{})
}

// Release takes a provider or a tool out of quarantine.
func (c *Client) Release(ctx context.Context, provider, tool, reason string) (ostiary.QuarantineInfo, error) {
	return ask[ostiary.QuarantineInfo](ctx, c, "Release", ofTool{provider, tool, reason})
}

// Lock asks for the lock file.
func (c *Client) Lock(ctx context.Context) ([]byte, error) {
	return ask[[]byte](ctx, c, "Lock", none{})
}

// Approvals asks for the requests that wait, or for all that are kept.
func (c *Client) Approvals(ctx context.Context, all bool) ([]ostiary.ApprovalInfo, error) {
	return ask[[]ostiary.ApprovalInfo](ctx, c, "Approvals", allOrWaiting{all})
}

// Approval asks for one request.
func (c *Client) Approval(ctx context.Context, id string) (ostiary.ApprovalInfo, error) {
	return ask[ostiary.ApprovalInfo](ctx, c, "Approval", ofID{id})
}

// Decide grants or declines a request.
func (c *Client) Decide(ctx context.Context, d ostiary.ApprovalDecision) (ostiary.ApprovalInfo, error) {
	return ask[ostiary.ApprovalInfo](ctx, c, "Decide", d)
}

// Revoke takes grants back.
func (c *Client) Revoke(ctx context.Context, d ostiary.Revocation) ([]ostiary.ApprovalInfo, error) {
	return ask[[]ostiary.ApprovalInfo](ctx, c, "Revoke", d)
}

// Taints asks what sessions have read.
func (c *Client) Taints(ctx context.Context) ([]ostiary.TaintInfo, error) {
	return ask[[]ostiary.TaintInfo](ctx, c, "Taints", none{})
}

// DropTaint forgets what a session has read.
func (c *Client) DropTaint(ctx context.Context, d ostiary.TaintDrop) (ostiary.TaintInfo, error) {
	return ask[ostiary.TaintInfo](ctx, c, "DropTaint", d)
}

// Evidence asks for what the firewall held.
func (c *Client) Evidence(ctx context.Context, f ostiary.EvidenceFilter) ([]ostiary.EvidenceInfo, error) {
	return ask[[]ostiary.EvidenceInfo](ctx, c, "Evidence", f)
}

// EvidenceContent asks for one item with its content.
func (c *Client) EvidenceContent(ctx context.Context, id string) (ostiary.EvidenceInfo, error) {
	return ask[ostiary.EvidenceInfo](ctx, c, "EvidenceContent", ofID{id})
}

// DecideEvidence releases, rejects or purges an item.
func (c *Client) DecideEvidence(ctx context.Context, id, verb, reason string) (ostiary.EvidenceInfo, error) {
	return ask[ostiary.EvidenceInfo](ctx, c, "DecideEvidence", onEvidence{id, verb, reason})
}

// Prune takes the content of old records out of the ledger.
func (c *Client) Prune(ctx context.Context, r ostiary.PruneRequest) (ostiary.PruneReport, error) {
	return ask[ostiary.PruneReport](ctx, c, "Prune", r)
}

// Explain asks which rule would decide about a call.
func (c *Client) Explain(ctx context.Context, q ostiary.ExplainRequest) (ostiary.JSON, error) {
	return ask[ostiary.JSON](ctx, c, "Explain", q)
}

// WorldHead asks where scopes stand.
func (c *Client) WorldHead(ctx context.Context, scopes []call.Scope) (call.Frontier, error) {
	return ask[call.Frontier](ctx, c, "WorldHead", ofScopes{scopes})
}

// WorldScopes asks which scopes have a commit.
func (c *Client) WorldScopes(ctx context.Context, after call.Scope, limit int) (ostiary.WorldScopes, error) {
	return ask[ostiary.WorldScopes](ctx, c, "WorldScopes", afterScope{after, limit})
}

// WorldDelta asks for commits of a scope.
func (c *Client) WorldDelta(ctx context.Context, scope call.Scope, after int64, limit int) (ostiary.WorldDelta, error) {
	return ask[ostiary.WorldDelta](ctx, c, "WorldDelta", afterSequence{scope, after, limit})
}

// WorldNext waits for commits above a frontier.
func (c *Client) WorldNext(ctx context.Context, seen call.Frontier, wait time.Duration) (ostiary.WorldNews, error) {
	return ask[ostiary.WorldNews](ctx, c, "WorldNext", sinceFrontier{seen, wait})
}

// ask has one operation done.
func ask[R, P any](ctx context.Context, c *Client, operation string, p P) (R, error) {
	return askAt[R](ctx, c, paths[operation], p)
}

func askAt[R, P any](ctx context.Context, c *Client, path string, p P) (answer R, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return answer, fmt.Errorf("ask the gateway: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway"+path, bytes.NewReader(body))
	if err != nil {
		return answer, fmt.Errorf("ask the gateway: %w", err)
	}
	resp, err := c.http.Do(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" { // it was there when we dialled first
		return answer, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if err != nil {
		return answer, fmt.Errorf("ask the gateway: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer, fmt.Errorf("ask the gateway: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.Unmarshal(raw, &answer); err != nil {
			return answer, fmt.Errorf("answer of the gateway: %w", err)
		}
		return answer, nil
	case http.StatusUnprocessableEntity:
		var f fault
		if err := json.Unmarshal(raw, &f); err != nil {
			return answer, fmt.Errorf("answer of the gateway: %w", err)
		}
		return answer, &remoteError{f}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return answer, fmt.Errorf("ask the gateway: it does not know %s: it is of another version than this program", path)
	default:
		return answer, fmt.Errorf("ask the gateway: %s: HTTP %d", path, resp.StatusCode)
	}
}

// remoteError keeps what the gateway said, and of which kind it was.
type remoteError struct{ fault fault }

func (e *remoteError) Error() string { return e.fault.Error }

// Fault is the kind that the gateway gave.
func (e *remoteError) Fault() ostiary.Fault { return e.fault.Kind }

// maxSocketPath is what the shortest of the systems' limits leaves for a socket's path.
const maxSocketPath = 100

// socketPath is where the socket of a data directory is: in it, or, if that path is too long for a socket, in a directory
// of the user's own with a name made from it.
func socketPath(dataDir string) (string, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("data directory %s: %w", dataDir, err)
	}
	path := filepath.Join(abs, "admin.sock")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ostiary-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("admin socket: %w", err)
	}
	if err := ownDir(dir); err != nil {
		return "", fmt.Errorf("admin socket: %w", err)
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock"), nil
}
