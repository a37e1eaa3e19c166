package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// sent measures at the socket whether any byte of one request has left. Sealing it answers that for good: once it is
// sealed, no byte can leave any more.
type sent struct{ state atomic.Int32 }

const (
	sentNothing int32 = iota
	sentWriting
	sentSome
	sentSealed
)

var errAbandoned = errors.New("the request was given up before it was sent")

// begin says whether a write may go on.
func (s *sent) begin() bool {
	return s.state.CompareAndSwap(sentNothing, sentWriting) || s.state.Load() != sentSealed
}

// end notes how many bytes a write took. A write that took none leaves no trace.
func (s *sent) end(n int) {
	if n > 0 {
		s.state.Store(sentSome)
		return
	}
	s.state.CompareAndSwap(sentWriting, sentNothing)
}

// seal says whether nothing has left, and then nothing ever will.
func (s *sent) seal() bool {
	return s.state.CompareAndSwap(sentNothing, sentSealed) || s.state.Load() == sentSealed
}

// sentConn is a dialled connection. A connection carries one request at a time, whose measure is attached when the request
// gets the connection; bytes of a TLS handshake come before that and belong to nobody.
type sentConn struct {
	net.Conn
	current atomic.Pointer[sent]
}

func (c *sentConn) Write(b []byte) (int, error) {
	s := c.current.Load()
	if s == nil {
		return c.Conn.Write(b)
	}
	if !s.begin() {
		return 0, errAbandoned
	}
	n, err := c.Conn.Write(b)
	s.end(n)
	return n, err
}

// attach makes s the measure of what conn writes from now on.
func (s *sent) attach(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*sentConn); ok {
		c.current.Store(s)
		return
	}
	s.end(1) // a connection that we did not dial cannot be measured: assume the worst
}
