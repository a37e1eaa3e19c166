package transport

import (
	"io"
	"sync"
)

// Large messages are read into and sent from buffers that are used again: allocating and returning as much memory for each
// call costs more than everything else that is done with it. A buffer goes back only when nobody can touch it any more;
// one of which that is not certain is left to the collector.
var messages = sync.Pool{New: func() any { return new([]byte) }}

// pooledFrom is the size from which on a message is worth a pooled buffer; keptMessage is the largest that is kept.
const (
	pooledFrom  = 4 << 10
	keptMessage = 1 << 20
)

// message gives a buffer of at least n bytes' capacity.
func message(n int) *[]byte {
	buf := messages.Get().(*[]byte)
	if cap(*buf) < n {
		*buf = make([]byte, 0, n+n/4)
	}
	*buf = (*buf)[:0]
	return buf
}

func keep(buf *[]byte) {
	if cap(*buf) <= keptMessage {
		messages.Put(buf)
	}
}

// outBody is a request's body on its way out. net/http reads it from a goroutine of its own, which may outlive the exchange
// that was given up. Once it is closed no read touches the bytes.
type outBody struct {
	mu     sync.Mutex // guards the fields, and b's bytes while they are read
	b      []byte
	closed bool
}

// Read implements io.Reader.
func (o *outBody) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, errAbandoned
	}
	if len(o.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.b)
	o.b = o.b[n:]
	return n, nil
}

// Close implements io.Closer.
func (o *outBody) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.b = true, nil
	return nil
}

// done says whether nobody reads the bytes any more, and sees to it that it stays so.
func (o *outBody) done() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}
