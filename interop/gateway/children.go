//go:build unix

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one process, told from a later one with the same id by its start time.
type process struct {
	pid     int
	started string
	command string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.command) }

func (p process) alive() bool {
	now, state, ok := look(p.pid)
	return ok && now.started == p.started && state != "Z"
}

// look reads /proc; ok is false where there is none.
func look(pid int) (p process, state string, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p, "", false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return p, "", false
	}
	cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	command := strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
	return process{pid: pid, started: fields[19], command: command[:min(len(command), 120)]}, fields[0], true
}

// descendants are the children of a process and theirs. Where there is no /proc there are none to be seen.
func descendants(root int) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				if p, _, ok := look(pid); ok {
					children[parent] = append(children[parent], p)
				}
			}
		}
	}
	var all []process
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children[queue[0].pid]...)
	}
	return all
}
