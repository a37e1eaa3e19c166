package mcpraw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const maxBody = 64 << 20

// HTTP is a client over Streamable HTTP. The headers are sent with every request.
func HTTP(url string, headers map[string]string) *Client {
	return &Client{conn: &httpConn{url: url, headers: headers, client: &http.Client{Timeout: 2 * time.Minute}}}
}

type httpConn struct {
	url      string
	headers  map[string]string
	client   *http.Client
	revision string
	session  string
}

func (c *httpConn) opened(revision string) { c.revision = revision }

func (c *httpConn) post(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if c.revision != "" {
		h.Set("MCP-Protocol-Version", c.revision)
	}
	if c.revision == Modern {
		h.Set("Mcp-Method", r.method)
		if r.name != "" {
			h.Set("Mcp-Name", headerValue(r.name))
		}
		for name, v := range r.params {
			h.Set(name, headerValue(v))
		}
	}
	if c.session != "" {
		h.Set("Mcp-Session-Id", c.session)
	}
	for k, v := range c.headers {
		h.Set(k, v)
	}
	return c.client.Do(req)
}

// headerValue writes a value as the specification's Base64 form if it is not plain ASCII.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !(strings.HasPrefix(s, "=?base64?") && strings.HasSuffix(s, "?="))
	for _, r := range s {
		plain = plain && r >= ' ' && r <= '~'
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

func (c *httpConn) notify(ctx context.Context, body []byte) error {
	m, err := parseMessage(body)
	if err != nil {
		return err
	}
	resp, err := c.post(ctx, request{method: m.Method, body: body})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: HTTP %d", m.Method, resp.StatusCode)
	}
	return nil
}

func (c *httpConn) roundTrip(ctx context.Context, r request, heard func(Message)) (Message, error) {
	resp, err := c.post(ctx, r)
	if err != nil {
		return Message{}, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && r.method == "initialize" {
		c.session = id
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		if err != nil {
			return Message{}, err
		}
		m, err := parseMessage(b)
		if err != nil {
			return Message{}, fmt.Errorf("HTTP %d, %.200q: %w", resp.StatusCode, b, err)
		}
		return m, nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxBody)
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(text, []byte(" "))...), '\n')
		}
		if len(line) > 0 || len(data) == 0 {
			continue
		}
		m, err := parseMessage(data)
		if err != nil {
			if len(bytes.TrimSpace(data)) > 0 {
				return Message{}, fmt.Errorf("event %.200q: %w", data, err)
			}
			data = data[:0]
			continue
		}
		data = data[:0]
		switch {
		case m.Method == "" && string(m.Object["id"]) == r.id:
			return m, nil
		case m.Method != "" && m.Object["id"] != nil:
			if err := c.decline(ctx, m); err != nil {
				return Message{}, err
			}
		default:
			heard(m)
		}
	}
	if err := lines.Err(); err != nil {
		return Message{}, err
	}
	return Message{}, fmt.Errorf("HTTP %d: the stream ended without an answer", resp.StatusCode)
}

// decline answers a request of the server's.
func (c *httpConn) decline(ctx context.Context, m Message) error {
	resp, err := c.post(ctx, request{body: declined(m)})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func declined(m Message) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(m.Object["id"]) + `,"error":{"code":-32601,"message":"not supported: ` + strconv.Quote(m.Method)[1:len(m.Method)+1] + `"}}`)
}

func (c *httpConn) close() error {
	if c.session == "" {
		return nil
	}
	req, err := http.NewRequest(http.MethodDelete, c.url, nil)
	if err != nil {
		return err
	}
	for k, v := range c.headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Mcp-Session-Id", c.session)
	req.Header.Set("MCP-Protocol-Version", c.revision)
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
