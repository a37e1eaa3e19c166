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
)

// ErrNotRunning says that no gateway answers on the data directory.
var ErrNotRunning = errors.New("no gateway is running on this data directory")

// Client asks a running gateway. It implements [ostiary.Operations].
type Client struct{ http *http.Client }

var _ ostiary.Operations = (*Client)(nil)

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
func (c *Client) Status(ctx context.Context) (s ostiary.Status, err error) {
	return s, c.do(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Tools asks for every tool.
func (c *Client) Tools(ctx context.Context) (t []ostiary.ToolInfo, err error) {
	return t, c.do(ctx, http.MethodGet, "/v1/tools", nil, &t)
}

// Call places a call. Progress does not cross processes.
func (c *Client) Call(ctx context.Context, r ostiary.CallRequest) (reply ostiary.CallReply, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return reply, fmt.Errorf("call %s: %w", r.Tool, err)
	}
	return reply, c.do(ctx, http.MethodPost, "/v1/call", body, &reply)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("answer of the gateway: %w", err)
		}
		return nil
	case http.StatusUnprocessableEntity:
		var f fault
		if err := json.Unmarshal(raw, &f); err != nil {
			return fmt.Errorf("answer of the gateway: %w", err)
		}
		if f.Ambiguous {
			return &remoteError{f.Error, ostiary.ErrAmbiguous}
		}
		return errors.New(f.Error)
	default:
		return fmt.Errorf("ask the gateway: %s %s: HTTP %d", method, path, resp.StatusCode)
	}
}

// remoteError keeps what the gateway said, and which of our errors it was.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

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
