package endpoint

import "sync"

// maxPooled is the largest buffer that is kept: one large answer must not hold memory for ever.
const maxPooled = 1 << 20

// buffer is a pooled byte slice for messages on their way out.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10)} }}

func getBuffer() *buffer {
	buf, _ := buffers.Get().(*buffer)
	return buf
}

func putBuffer(buf *buffer) {
	if cap(buf.b) > maxPooled {
		return
	}
	buf.b = buf.b[:0]
	buffers.Put(buf)
}

// bodies are buffers of requests on their way in. They go back when the request has been answered: until then arguments are
// parts of them.
var bodies = sync.Pool{New: func() any { return new(buffer) }}

// pooledBody is the size from which on a body is worth a pooled buffer.
const pooledBody = 4 << 10

func getBody(n int) *buffer {
	buf := bodies.Get().(*buffer)
	if cap(buf.b) < n {
		buf.b = make([]byte, 0, n+n/4)
	}
	return buf
}

func putBody(buf *buffer) {
	if cap(buf.b) <= maxPooled+maxPooled/4+2 {
		buf.b = buf.b[:0]
		bodies.Put(buf)
	}
}
