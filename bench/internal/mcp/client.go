package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary/ostiary/bench/internal/jsonscan"
	"github.com/ostiary/ostiary/bench/internal/rawhttp"
)

// Endpoint is where and how to reach a server.
type Endpoint struct {
	Addr    string // host:port to dial
	Path    string
	Modern  bool
	Headers map[string]string
}

// Errors that an exchange can end with, besides those of the transport.
var (
	// ErrMismatch: the answer belongs to another request, or holds another text.
	ErrMismatch = errors.New("mismatch")
	// ErrNoAnswer: the server ended its answer without a response.
	ErrNoAnswer = errors.New("no response in the answer")
)

// StatusError is an HTTP status other than success.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Body) }

// Client is one connection to a server and, on 2025-11-25, one session. It is
// for one goroutine.
type Client struct {
	Endpoint
	Conn    rawhttp.Conn
	session string
	id      int64
}

// NewClient returns a client that has not connected yet.
func NewClient(e Endpoint, timeout time.Duration) *Client {
	return &Client{Endpoint: e, Conn: rawhttp.Conn{Addr: e.Addr, Timeout: timeout}}
}

// Open connects, and on 2025-11-25 begins a session.
func (c *Client) Open() error {
	if err := c.Conn.Dial(); err != nil {
		return err
	}
	if c.Modern {
		return nil
	}
	c.session = ""
	if _, err := c.Request("initialize", "", `"protocolVersion":"`+LegacyVersion+`","capabilities":{},"clientInfo":{"name":"measure","version":"1.0.0"}`); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	note := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r, err := c.Conn.Do(append(c.Head("POST", "notifications/initialized", "", len(note)), note...))
	if err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	if r.Status/100 != 2 {
		return fmt.Errorf("notifications/initialized: %w", c.statusError(r))
	}
	c.Conn.Finish(drain)
	return nil
}

// Close ends the session, if there is one, and the connection.
func (c *Client) Close() {
	if c.session != "" {
		c.Conn.Close()
		c.Conn.Timeout = min(c.Conn.Timeout, time.Second)
		c.Conn.Do(c.Head("DELETE", "", "", 0))
		c.session = ""
	}
	c.Conn.Close()
}

// Request sends one request and returns the raw result. members are the params
// without braces.
func (c *Client) Request(method, name, members string) ([]byte, error) {
	c.id++
	id := strconv.FormatInt(c.id, 10)
	body := c.Body(id, method, members)
	msg, _, err := c.Exchange(append(c.Head("POST", method, name, len(body)), body...), []byte(id))
	if err != nil {
		return nil, err
	}
	return Result(msg)
}

// Body returns the JSON of a request.
func (c *Client) Body(id, method, members string) []byte {
	b := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + members
	if c.Modern {
		if members != "" {
			b += ","
		}
		b += `"_meta":{"` + MetaVersion + `":"` + ModernVersion + `","` + MetaClient + `":{"name":"measure","version":"1.0.0"},"` + MetaCapabilities + `":{}}`
	}
	return []byte(b + "}}")
}

// Head returns the head of an HTTP request that carries an RPC method with a
// body of the given length. method is the HTTP method.
func (c *Client) Head(method, rpc, name string, length int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, c.Path, c.Addr)
	switch {
	case method == "GET":
		b.WriteString("Accept: text/event-stream\r\n")
	case method == "POST":
		fmt.Fprintf(&b, "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	switch {
	case c.Modern:
		fmt.Fprintf(&b, "MCP-Protocol-Version: %s\r\nMcp-Method: %s\r\n", ModernVersion, rpc)
		if name != "" {
			fmt.Fprintf(&b, "Mcp-Name: %s\r\n", name)
		}
	case rpc != "initialize":
		fmt.Fprintf(&b, "MCP-Protocol-Version: %s\r\n", LegacyVersion)
		if c.session != "" {
			fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\n", c.session)
		}
	}
	names := make([]string, 0, len(c.Headers))
	for n := range c.Headers {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "%s: %s\r\n", n, c.Headers[n])
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// drain is how long to wait for the end of a stream whose response has come.
const drain = 200 * time.Millisecond

// Exchange sends a prepared request and returns the response with that id and
// when it had come. The bytes are valid until the next exchange.
func (c *Client) Exchange(request, id []byte) (msg []byte, at time.Time, err error) {
	r, err := c.Conn.Do(request)
	if err != nil {
		return nil, time.Now(), err
	}
	if r.Session != "" {
		c.session = r.Session
	}
	if r.Status != 200 {
		return nil, time.Now(), c.statusError(r)
	}
	for {
		msg, err = c.Conn.Next(r)
		at = time.Now()
		if err == io.EOF {
			c.Conn.Finish(drain)
			return nil, at, ErrNoAnswer
		}
		if err != nil {
			c.Conn.Close()
			return nil, at, err
		}
		var got []byte
		method := false
		if err = jsonscan.Members(msg, func(k, v []byte) {
			switch string(k) {
			case "id":
				got = v
			case "method":
				method = true
			}
		}); err != nil {
			c.Conn.Close()
			return nil, at, fmt.Errorf("%w: %.60q", err, msg)
		}
		if method {
			continue // a notification, or a request to the client
		}
		c.Conn.Finish(drain)
		if !bytes.Equal(got, id) {
			return nil, at, fmt.Errorf("%w: sent id %s, got %.60s", ErrMismatch, id, got)
		}
		return msg, at, nil
	}
}

func (c *Client) statusError(r rawhttp.Response) error {
	body, _ := c.Conn.Next(r)
	e := &StatusError{Status: r.Status, Body: string(body[:min(len(body), 200)])}
	c.Conn.Finish(drain)
	return e
}

// Result returns the raw result of a response, or its error as an error.
func Result(msg []byte) ([]byte, error) {
	var result, failure []byte
	if err := jsonscan.Members(msg, func(k, v []byte) {
		switch string(k) {
		case "result":
			result = v
		case "error":
			failure = v
		}
	}); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, fmt.Errorf("JSON-RPC error %.200s", failure)
	}
	if result == nil {
		return nil, ErrNoAnswer
	}
	return result, nil
}
