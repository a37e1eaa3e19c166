package httpd

import (
	"net"
	"sync"
	"sync/atomic"
)

// cappedListener bounds open connections (F-46). Beyond the bound a connection is closed at once: a client sees an error
// instead of silence, and the accept queue stays short.
type cappedListener struct {
	net.Listener
	max     int64
	open    atomic.Int64
	turned  atomic.Int64
	refused func(total int64)
}

func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.max {
			l.open.Add(-1)
			_ = c.Close()
			l.refused(l.turned.Add(1))
			continue
		}
		return &countedConn{Conn: c, release: func() { l.open.Add(-1) }}, nil
	}
}

type countedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
