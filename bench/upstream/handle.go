package main

import (
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
)

// handle answers one HTTP request.
func (c *conn) handle() error {
	h := &c.head
	if h.path == "/healthz" {
		return c.plain("200 OK", "ok", false)
	}
	if h.path != c.s.path {
		return c.plain("404 Not Found", "no such path", false)
	}
	if len(h.origin) > 0 && !local(string(h.origin)) {
		return c.plain("403 Forbidden", "foreign origin", false)
	}
	switch h.method {
	case "POST":
		return c.post()
	case "GET":
		if status := c.s.sessions.check(h.session); status != "" {
			return c.plain(status, "GET needs a session", false)
		}
		return c.idleStream(nil)
	case "DELETE":
		if !c.s.sessions.remove(h.session) {
			return c.plain("404 Not Found", "no such session", false)
		}
		return c.plain("200 OK", "", false)
	}
	return c.plain("405 Method Not Allowed", "POST, GET or DELETE", false)
}

func (c *conn) post() error {
	h := &c.head
	m, err := parse(c.body)
	if err != nil {
		return c.reply("400 Bad Request", "", failure(c.start(), nil, -32700, "malformed JSON"))
	}
	modern := string(h.version) == mcp.ModernVersion || string(m.metaVersion) == mcp.ModernVersion
	if modern {
		return c.modern(&m)
	}
	session := ""
	if m.is("initialize") {
		session = "Mcp-Session-Id: " + c.s.sessions.add() + "\r\n"
	} else if status := c.s.sessions.check(h.session); status != "" {
		return c.reply(status, "", failure(c.start(), m.id, -32600, "no such session"))
	}
	if !m.isRequest {
		return c.plain("202 Accepted", "", false)
	}
	if d, steps, ok := m.slow(); ok {
		return c.slow(&m, d, steps, false)
	}
	out, _ := c.s.answer(c.start(), &m, false)
	return c.reply("200 OK", session, out)
}

func (c *conn) modern(m *message) error {
	h := &c.head
	if !m.isRequest {
		return c.plain("202 Accepted", "", false)
	}
	named := m.is("tools/call")
	switch {
	case string(m.metaVersion) != string(h.version),
		string(h.rpcMethod) != string(m.method),
		named && string(h.rpcName) != string(m.name):
		return c.reply("400 Bad Request", "", failure(c.start(), m.id, -32020, "headers and body differ"))
	case m.is("subscriptions/listen"):
		return c.idleStream(m)
	}
	if d, steps, ok := m.slow(); ok {
		return c.slow(m, d, steps, true)
	}
	out, known := c.s.answer(c.start(), m, true)
	if !known {
		return c.reply("404 Not Found", "", out)
	}
	return c.reply("200 OK", "", out)
}

func (c *conn) slow(m *message, d time.Duration, steps int, modern bool) error {
	if m.token == nil {
		time.Sleep(d)
		return c.reply("200 OK", "", slept(c.start(), m, d, modern))
	}
	if err := c.startStream(); err != nil {
		return err
	}
	for i := range steps {
		time.Sleep(d / time.Duration(steps))
		if err := c.event(progress(nil, m, i+1, steps)); err != nil {
			return err
		}
	}
	if err := c.event(slept(nil, m, d, modern)); err != nil {
		return err
	}
	_, err := c.nc.Write([]byte("0\r\n\r\n"))
	return err
}

// idleStream keeps a stream open until the client leaves: subscriptions/listen
// with its acknowledgement, or a session's GET (no message).
func (c *conn) idleStream(m *message) error {
	if err := c.startStream(); err != nil {
		return err
	}
	if m != nil {
		if err := c.event(acknowledged(nil, m)); err != nil {
			return err
		}
	}
	c.body, c.out, c.br = nil, nil, nil
	c.head.close = true
	var one [1]byte
	_, err := c.nc.Read(one[:]) // a client has nothing to send here but its leave
	return err
}

// headroom is kept free before an answer's body, for a head that is written
// once the length is known: one buffer, one write.
const headroom = 512

func (c *conn) start() []byte {
	if cap(c.out) < headroom {
		c.out = make([]byte, 0, 4<<10)
	}
	return c.out[:headroom]
}

// reply sends a JSON body that was built on start.
func (c *conn) reply(status, header string, out []byte) error {
	c.out = out
	var room [headroom]byte
	h := append(room[:0], "HTTP/1.1 "...)
	h = append(h, status...)
	h = append(h, "\r\nContent-Type: application/json\r\n"...)
	h = append(h, header...)
	h = append(h, "Content-Length: "...)
	h = strconv.AppendInt(h, int64(len(out)-headroom), 10)
	h = append(h, "\r\n\r\n"...)
	at := headroom - copy(out[headroom-len(h):headroom], h)
	_, err := c.nc.Write(out[at:])
	return err
}

func (c *conn) plain(status, text string, last bool) error {
	h := "HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\n"
	if last {
		c.head.close = true
		h += "Connection: close\r\n"
	}
	_, err := c.nc.Write([]byte(h + "\r\n" + text))
	return err
}

func (c *conn) startStream() error {
	_, err := c.nc.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n"))
	return err
}

func (c *conn) event(data []byte) error {
	const before, after = "event: message\ndata: ", "\n\n"
	b := strconv.AppendInt(nil, int64(len(before)+len(data)+len(after)), 16)
	b = append(b, "\r\n"+before...)
	b = append(b, data...)
	_, err := c.nc.Write(append(b, after+"\r\n"...))
	return err
}

// sessions are the open sessions of legacy clients.
type sessions struct {
	mu   sync.RWMutex
	open map[string]struct{}
}

func (s *sessions) add() string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]struct{}{}
	}
	s.open[id] = struct{}{}
	return id
}

// check returns the HTTP status to refuse with, or "".
func (s *sessions) check(id []byte) string {
	if len(id) == 0 {
		return "400 Bad Request"
	}
	s.mu.RLock()
	_, ok := s.open[string(id)]
	s.mu.RUnlock()
	if !ok {
		return "404 Not Found"
	}
	return ""
}

func (s *sessions) remove(id []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.open[string(id)]
	delete(s.open, string(id))
	return ok
}
