package transport

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func setProcAttr(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has ended, and says whether it is still unreaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}

// procStat is the part of /proc/<pid>/stat that tells relations.
type procStat struct {
	pid, ppid, pgid, sid int
	start                uint64
	zombie, holds        bool
}

func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name stands in parentheses and may hold anything, so the fields start after the last one.
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return procStat{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return procStat{}, false
	}
	s := procStat{pid: pid, zombie: f[0] == "Z" || f[0] == "X"}
	s.ppid, _ = strconv.Atoi(f[1])
	s.pgid, _ = strconv.Atoi(f[2])
	s.sid, _ = strconv.Atoi(f[3])
	s.start, _ = strconv.ParseUint(f[19], 10, 64)
	return s, true
}

// record notes every process that descends from the child now: by parent, by group or session of one that is known, or
// because it holds a pipe that was given to the child. A process that starts a session of its own stays in the notes.
func (p *process) record() {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	self := os.Getpid()
	stats := make([]procStat, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid <= 1 {
			continue
		}
		if s, ok := readStat(pid); ok && !s.zombie {
			s.holds = p.holdsPipe(pid)
			stats = append(stats, s)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	family := map[int]bool{}
	if !p.waitFor(0) { // once it has been reaped its number may be somebody else's
		family[p.pid] = true
	}
	for pid, start := range p.known {
		if s, ok := readStat(pid); ok && s.start == start {
			family[pid] = true
		} else {
			delete(p.known, pid)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, s := range stats {
			if family[s.pid] {
				continue
			}
			if s.pid == p.pid {
				continue
			}
			if family[s.ppid] || family[s.pgid] || family[s.sid] || s.holds {
				family[s.pid] = true
				p.known[s.pid] = s.start
				grown = true
			}
		}
	}
}

// holdsPipe says whether a process has one of the child's pipes open: an orphan that was forked twice has lost its
// ancestry, but rarely its streams. The gateway holds the other ends, and is left out before.
func (p *process) holdsPipe(pid int) bool {
	fds := "/proc/" + strconv.Itoa(pid) + "/fd"
	for _, fd := range []string{"0", "1", "2"} {
		link, err := os.Readlink(fds + "/" + fd)
		if err != nil {
			continue
		}
		ino, ok := strings.CutPrefix(link, "pipe:[")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(ino, "]"), 10, 64)
		for _, have := range p.pipes {
			if err == nil && n == have {
				return true
			}
		}
	}
	return false
}

// sweep kills what is left of the child's descendants; with force also the child and its group, which must not have been
// reaped. It looks again until nothing is left, because a process can fork while others are being killed.
func (p *process) sweep(force bool) {
	for range 4 {
		p.record()
		if force && !p.waitFor(0) {
			p.group.kill()
		}
		p.mu.Lock()
		left := 0
		for pid, start := range p.known {
			if s, ok := readStat(pid); ok && s.start == start && !s.zombie {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				left++
			}
		}
		p.mu.Unlock()
		if left == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond) // the kernel needs a moment before the next look
	}
}

func pipeInode(f *os.File) uint64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Ino
}
