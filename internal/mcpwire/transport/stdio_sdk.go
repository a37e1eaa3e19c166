package transport

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// sdkOpenRequests bounds the requests of a server that the SDK has taken and not answered yet (F-28).
const sdkOpenRequests = 16

// SDKTransport lets one SDK client session use the same pipe: its messages pass through the single writer, and it gets
// the answers with ids that are not ours, and the server's requests. Notifications go to the carrier's own sink alone.
func (c *StdioCarrier) SDKTransport() mcp.Transport { return sdkSeam{c} }

type sdkSeam struct{ c *StdioCarrier }

func (s sdkSeam) Connect(context.Context) (mcp.Connection, error) {
	conn := &sdkConn{
		c: s.c, answers: make(chan jsonrpc.Message, 4), requests: make(chan jsonrpc.Message, sdkOpenRequests),
		closed: make(chan struct{}), open: map[jsonrpc.ID]struct{}{},
	}
	s.c.sdk.Store(conn)
	if err := s.c.Err(); err != nil { // it ended before it could tell the new connection
		conn.Close()
	}
	return conn, nil
}

type sdkConn struct {
	c        *StdioCarrier
	answers  chan jsonrpc.Message
	requests chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	mu         sync.Mutex // guards what follows
	initialize jsonrpc.ID
	result     []byte                  // of initialize, byte for byte
	open       map[jsonrpc.ID]struct{} // requests of the server that wait for the SDK's answer
}

var _ mcp.Connection = (*sdkConn)(nil)

// InitializeResult is the raw result of the SDK's handshake; nil before it.
func (c *StdioCarrier) InitializeResult() []byte {
	s := c.sdk.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}

// offerAnswer takes an answer whose id is not ours. The line has been parsed strictly before.
func (s *sdkConn) offerAnswer(f content.Frame, line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return false
	}
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return false
	}
	s.mu.Lock()
	if f.Result != nil && r.ID == s.initialize && s.result == nil {
		s.result = append([]byte{}, f.Result...)
	}
	s.mu.Unlock()
	select {
	case s.answers <- m:
		return true
	default:
		return false
	}
}

func (s *sdkConn) offerRequest(line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return false
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return false
	}
	s.mu.Lock()
	_, twice := s.open[r.ID]
	full := len(s.open) >= sdkOpenRequests
	if !twice && !full {
		s.open[r.ID] = struct{}{}
	}
	s.mu.Unlock()
	if twice || full {
		return false
	}
	select {
	case s.requests <- m:
		return true
	default:
		return false
	}
}

// Read implements [mcp.Connection].
func (s *sdkConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.answers:
		return m, nil
	case m := <-s.requests:
		return m, nil
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (s *sdkConn) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.Method == "notifications/cancelled" {
			return nil // of initialize alone, which must not be cancelled
		}
		if m.Method == "initialize" {
			s.mu.Lock()
			s.initialize = m.ID
			s.mu.Unlock()
		}
	case *jsonrpc.Response:
		s.mu.Lock()
		delete(s.open, m.ID)
		s.mu.Unlock()
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	line := lineBuffers.Get().(*[]byte)
	*line = append(append((*line)[:0], b...), '\n')
	return s.c.send(ctx, line)
}

// Close implements [mcp.Connection]. It lets go of the pipe and leaves it open.
func (s *sdkConn) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// SessionID implements [mcp.Connection]; stdio has none.
func (s *sdkConn) SessionID() string { return "" }
