package transport

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// The faults of an event stream.
var (
	errEventTooLarge  = errors.New("an event is larger than the bound")
	errStreamTooLarge = errors.New("the stream is larger than the bound")
)

const sseChunk = 16 << 10

// fieldName is what a line may have beside a value of the largest size.
const fieldName = 16

// keptBuffer is the largest buffer that goes back to a pool: one large message must not keep its memory for ever.
const keptBuffer = 256 << 10

var readBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, sseChunk)) }}

// event is one event of a stream. data aliases the reader's buffer and is valid until the next call of next.
type event struct {
	name string // "" is "message"
	data []byte
	id   string
	idOK bool // an id field was there
}

// eventReader reads server-sent events: fields of lines that end in LF, CRLF or CR, dispatched by an empty line. Comments
// and unknown fields mean nothing. An event that the stream's end cuts off is dropped, as the format says, so that half a
// message is never taken for one.
type eventReader struct {
	r        io.Reader
	maxEvent int64
	maxTotal int64 // 0: no bound

	buf    *[]byte
	pos    int // start of what is not consumed
	seen   int // bytes after pos in which no line end was found
	total  int64
	skipLF bool // the last line ended in CR: an LF that follows belongs to it
	began  bool

	data  []byte // data lines of the event at hand, if there are several
	lines int
	retry int64 // the last retry field in milliseconds; 0: none
}

func newEventReader(r io.Reader, maxEvent, maxTotal int64) *eventReader {
	return &eventReader{r: r, maxEvent: maxEvent, maxTotal: maxTotal, buf: readBuffers.Get().(*[]byte)}
}

// release gives the buffer back. Nothing read may be used afterwards.
func (e *eventReader) release() {
	if e.buf == nil {
		return
	}
	if cap(*e.buf) <= keptBuffer {
		*e.buf = (*e.buf)[:0]
		readBuffers.Put(e.buf)
	}
	e.buf = nil
}

// next reads the next event that has data or an id. It returns io.EOF at the stream's end, and the reader's error if it
// failed.
func (e *eventReader) next() (event, error) {
	var ev event
	e.data, e.lines = e.data[:0], 0
	e.compact()
	var single [2]int // where the only data line is, relative to pos of this event's start
	for {
		start, end, err := e.line()
		if err != nil {
			return event{}, err
		}
		line := (*e.buf)[start:end]
		if len(line) == 0 {
			switch {
			case e.lines == 1:
				ev.data = (*e.buf)[single[0]:single[1]]
			case e.lines > 1:
				ev.data = e.data
			case !ev.idOK:
				ev = event{}
				e.compact()
				continue
			}
			return ev, nil
		}
		if line[0] == ':' {
			e.dropIfIdle()
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(name) {
		case "data":
			e.lines++
			switch at := end - len(value); e.lines {
			case 1:
				single = [2]int{at, end}
			case 2:
				e.data = append(e.data, (*e.buf)[single[0]:single[1]]...)
				fallthrough
			default:
				e.data = append(e.data, '\n')
				e.data = append(e.data, value...)
			}
			if int64(len(e.data)) > e.maxEvent || int64(len(value)) > e.maxEvent {
				return event{}, errEventTooLarge
			}
		case "event":
			ev.name = string(value[:min(len(value), 64)])
		case "id":
			if bytes.IndexByte(value, 0) < 0 && len(value) <= 1024 {
				ev.id, ev.idOK = string(value), true
			}
		case "retry":
			e.retry = parseRetry(value)
		}
		if e.lines == 0 && !ev.idOK {
			e.dropIfIdle()
		}
	}
}

// parseRetry reads milliseconds; at most a minute is believed.
func parseRetry(value []byte) int64 {
	var n int64
	for _, c := range value {
		if c < '0' || c > '9' || n > 60_000 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return min(n, 60_000)
}

// dropIfIdle forgets consumed bytes between events, so that endless comments cost no memory.
func (e *eventReader) dropIfIdle() {
	if e.lines == 0 && e.pos > sseChunk/2 {
		e.compact()
	}
}

func (e *eventReader) compact() {
	b := *e.buf
	if e.pos == 0 {
		return
	}
	n := copy(b, b[e.pos:])
	*e.buf = b[:n]
	e.pos = 0
}

// line finds the next line and consumes it with its end.
func (e *eventReader) line() (start, end int, err error) {
	for {
		b := *e.buf
		if e.skipLF && e.pos < len(b) {
			if b[e.pos] == '\n' {
				e.pos++
			}
			e.skipLF = false
		}
		if !e.began && len(b)-e.pos >= 3 { // one byte order mark may begin the stream
			e.began = true
			if bytes.HasPrefix(b[e.pos:], []byte("\xef\xbb\xbf")) {
				e.pos, e.seen = e.pos+3, 0
			}
		}
		if !e.skipLF && e.pos+e.seen <= len(b) {
			rest := b[e.pos+e.seen:]
			n := bytes.IndexByte(rest, '\n')
			if n >= 0 {
				rest = rest[:n]
			}
			if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
				n, e.skipLF = cr, true
			}
			if n >= 0 {
				start, end = e.pos, e.pos+e.seen+n
				if int64(end-start) > e.maxEvent+fieldName {
					return 0, 0, errEventTooLarge
				}
				e.pos, e.seen, e.began = end+1, 0, true
				return start, end, nil
			}
			e.seen += len(rest)
		}
		if int64(e.seen) > e.maxEvent+fieldName {
			return 0, 0, errEventTooLarge
		}
		if err := e.fill(); err != nil {
			return 0, 0, err
		}
	}
}

func (e *eventReader) fill() error {
	b := *e.buf
	if int64(len(b)) > 2*e.maxEvent+sseChunk { // many small fields make one large event too
		return errEventTooLarge
	}
	if len(b) == cap(b) {
		b = append(make([]byte, 0, max(2*cap(b), sseChunk)), b...)
	}
	for range 100 {
		n, err := e.r.Read(b[len(b):cap(b)])
		*e.buf = b[:len(b)+n]
		e.total += int64(n)
		if e.maxTotal > 0 && e.total > e.maxTotal {
			return errStreamTooLarge
		}
		if n > 0 {
			return nil // an error comes again with the next read
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
