//go:build unix

package sqlstore

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// reportCPU reports the CPU time of the process per operation, and records per second.
func reportCPU(b *testing.B, records int) {
	start, wall := cpuTime(), time.Now()
	b.Cleanup(func() {
		b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N), "cpu-µs/op")
		b.ReportMetric(float64(b.N*records)/time.Since(wall).Seconds(), "records/s")
	})
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
