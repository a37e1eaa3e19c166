//go:build linux

// Package proc reads processor time and resident memory of a process and all
// its descendants from /proc (Linux only).
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// userHZ is the unit of times in /proc/PID/stat; Linux fixes it at 100 for
// user space on every architecture that Go runs on.
const userHZ = 100

// Usage is what a process tree had used up when it was looked at.
type Usage struct {
	Root time.Duration // processor time of the root process itself
	Tree time.Duration // the root, its living descendants and those already waited for
	RSS  int64         // bytes resident, summed over the tree
	PIDs []int         // the tree, root first

	RootRSS int64 // bytes resident of the root process itself
}

// Sample looks at the tree under root.
func Sample(root int) (Usage, error) {
	stats := readAll()
	if _, ok := stats[root]; !ok {
		return Usage{}, fmt.Errorf("process %d is gone", root)
	}
	children := map[int][]int{}
	for pid, s := range stats {
		children[s.parent] = append(children[s.parent], pid)
	}
	u := Usage{PIDs: []int{root}}
	for i := 0; i < len(u.PIDs); i++ {
		u.PIDs = append(u.PIDs, children[u.PIDs[i]]...)
	}
	for _, pid := range u.PIDs {
		own := stats[pid].own
		if d, err := clock(pid); err == nil {
			own = d
		}
		if pid == root {
			u.Root = own
		}
		u.Tree += own + stats[pid].waited
		resident := rss(pid)
		if pid == root {
			u.RootRSS = resident
		}
		u.RSS += resident
	}
	return u, nil
}

// Self returns the processor time of this process.
func Self() time.Duration {
	d, err := clock(os.Getpid())
	if err != nil {
		if s, ok := readStat(os.Getpid()); ok {
			return s.own
		}
	}
	return d
}

// LoadAverage returns the three load averages as the kernel prints them.
func LoadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := bytes.Fields(b)
	return string(bytes.Join(f[:min(3, len(f))], []byte(" ")))
}

// Started tells when a process began, in ticks since boot, or 0 if there is
// none: a number that was given anew has another one.
func Started(pid int) int64 {
	s, _ := readStat(pid)
	return s.started
}

type stat struct {
	parent      int
	started     int64
	own, waited time.Duration
}

func readAll() map[int]stat {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]stat, len(dir))
	for _, e := range dir {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
		}
	}
	return all
}

func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	// The command name may hold blanks and parentheses: cut after the last one.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return stat{}, false
	}
	num := func(i int) int64 { n, _ := strconv.ParseInt(string(f[i]), 10, 64); return n }
	ticks := func(i int) time.Duration { return time.Duration(num(i)) * time.Second / userHZ }
	return stat{parent: int(num(1)), started: num(19), own: ticks(11) + ticks(12), waited: ticks(13) + ticks(14)}, true
}

// clock reads the processor time clock of a process, which counts the same as
// /proc/PID/stat in nanoseconds instead of 10 ms ticks.
func clock(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|sched), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, errno
	}
	return time.Duration(ts.Nano()), nil
}

// rss reads the exact figure where the kernel has one, else the counter.
func rss(pid int) int64 {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		if _, after, ok := bytes.Cut(b, []byte("\nRss:")); ok {
			if f := bytes.Fields(after); len(f) > 0 {
				n, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return n << 10
			}
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(string(f[1]), 10, 64)
	return n * int64(os.Getpagesize())
}
