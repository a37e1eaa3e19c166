package endpoint

import "sync"

// maxPooled is the largest buffer that is kept: one large answer must not hold memory for ever.
const maxPooled = 256 << 10

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
