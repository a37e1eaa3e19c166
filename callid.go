package ostiary

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"

	"github.com/ostiary/ostiary/call"
)

// callIDs is Crockford's alphabet: ids sort by time, and none has two letters that look alike.
var callIDs = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newCallID makes ids of 48 bits of time and 80 bits of chance: they never repeat, and sort roughly by age.
func newCallID(now func() time.Time) func() call.ID {
	return func() call.ID {
		var b [16]byte
		var ms [8]byte
		binary.BigEndian.PutUint64(ms[:], uint64(now().UnixMilli()))
		copy(b[:6], ms[2:])
		_, _ = rand.Read(b[6:]) // it never fails: the runtime ends the process instead
		return call.ID(callIDs.EncodeToString(b[:]))
	}
}
