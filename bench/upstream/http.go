package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

const (
	maxRequest = 128 << 20
	keepBuffer = 1 << 20 // larger buffers are let go after use
)

// conn is one client connection; it is served by one goroutine, so its buffers
// are reused from request to request.
type conn struct {
	s    *server
	nc   net.Conn
	br   *bufio.Reader
	head head
	body []byte
	out  []byte
}

// head holds what matters of a request's head.
type head struct {
	method, path                string
	length                      int64
	chunked, close, expect      bool
	version, rpcMethod, rpcName []byte // copies
	session, origin             []byte
}

func (s *server) serve(ln net.Listener) error {
	for {
		nc, err := ln.Accept()
		if err != nil {
			return err
		}
		go (&conn{s: s, nc: nc, br: bufio.NewReaderSize(nc, 4<<10)}).serve()
	}
}

func (c *conn) serve() {
	defer c.nc.Close()
	for {
		if err := c.readHead(); err != nil {
			if errors.Is(err, errBadRequest) {
				c.plain("400 Bad Request", err.Error(), true)
			}
			return
		}
		if c.head.expect {
			if _, err := c.nc.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
				return
			}
		}
		if err := c.readBody(); err != nil {
			return
		}
		if err := c.handle(); err != nil || c.head.close {
			return
		}
		if cap(c.body) > keepBuffer {
			c.body = nil
		}
		if cap(c.out) > keepBuffer {
			c.out = nil
		}
	}
}

var errBadRequest = errors.New("bad request")

func (c *conn) readHead() error {
	h := &c.head
	*h = head{version: h.version[:0], rpcMethod: h.rpcMethod[:0], rpcName: h.rpcName[:0], session: h.session[:0], origin: h.origin[:0]}
	line, err := c.line()
	if err != nil {
		return err
	}
	method, rest, ok1 := bytes.Cut(line, []byte(" "))
	target, proto, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok1 || !ok2 || string(proto) != "HTTP/1.1" {
		return errBadRequest
	}
	target, _, _ = bytes.Cut(target, []byte("?"))
	h.method, h.path = intern(method, "POST", "GET", "DELETE"), intern(target, c.s.path, "/healthz")
	for {
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return errBadRequest
		}
		if err := h.field(name, bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
}

func (h *head) field(name, value []byte) error {
	// The length picks the candidates before any letters are compared.
	switch len(name) {
	case len("expect"): // and "origin"
		h.expect = h.expect || is(name, "expect")
		if is(name, "origin") {
			h.origin = append(h.origin, value...)
		}
	case len("mcp-name"):
		if is(name, "mcp-name") {
			h.rpcName = append(h.rpcName, value...)
		}
	case len("connection"): // and "mcp-method"
		if is(name, "connection") {
			h.close = h.close || is(value, "close")
		} else if is(name, "mcp-method") {
			h.rpcMethod = append(h.rpcMethod, value...)
		}
	case len("content-length"): // and "mcp-session-id"
		if is(name, "content-length") {
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || n < 0 || n > maxRequest {
				return errBadRequest
			}
			h.length = n
		} else if is(name, "mcp-session-id") {
			h.session = append(h.session, value...)
		}
	case len("transfer-encoding"):
		if is(name, "transfer-encoding") {
			h.chunked = true
		}
	case len("mcp-protocol-version"):
		if is(name, "mcp-protocol-version") {
			h.version = append(h.version, value...)
		}
	}
	return nil
}

func (c *conn) readBody() error {
	if !c.head.chunked {
		c.body = slices.Grow(c.body[:0], int(c.head.length))[:c.head.length]
		_, err := io.ReadFull(c.br, c.body)
		return err
	}
	c.body = c.body[:0]
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 64)
		if err != nil || n < 0 || int64(len(c.body))+n > maxRequest {
			return errBadRequest
		}
		at := len(c.body)
		c.body = slices.Grow(c.body, int(n))[:at+int(n)]
		if _, err := io.ReadFull(c.br, c.body[at:]); err != nil {
			return err
		}
		// The chunk's end of line; after the last chunk, trailers and a blank line.
		for {
			if line, err = c.line(); err != nil {
				return err
			}
			if len(line) == 0 {
				break
			}
			if n > 0 {
				return errBadRequest
			}
		}
		if n == 0 {
			return nil
		}
	}
}

func (c *conn) line() ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, errBadRequest
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// is compares with a lower-case word, ignoring case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, ch := range b {
		if 'A' <= ch && ch <= 'Z' {
			ch += 'a' - 'A'
		}
		if ch != lower[i] {
			return false
		}
	}
	return true
}

// intern saves the allocation of a string that is one of a few.
func intern(b []byte, known ...string) string {
	for _, k := range known {
		if string(b) == k {
			return k
		}
	}
	return string(b)
}

// local reports an Origin header that a page on this machine may send.
func local(origin string) bool {
	_, host, ok := strings.Cut(origin, "://")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return ok && (host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback())
}
