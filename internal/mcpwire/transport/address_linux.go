package transport

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged bounds, in milliseconds, how long sent bytes may stay unacknowledged before the connection is given up:
// a peer that vanished without a FIN while a request is on its way to it (F-30).
const unacknowledged = 30_000

func boundUnacknowledged(raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledged)
	})
	if err != nil {
		return err
	}
	return failed
}
