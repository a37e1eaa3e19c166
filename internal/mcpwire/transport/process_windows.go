package transport

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processGroup is a job object that ends with its last handle, and everything in it with it.
type processGroup struct {
	mu      sync.Mutex
	job     windows.Handle // 0: none, or released
	process *os.Process
}

func setProcAttr(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func (g *processGroup) adopt(p *os.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process = p
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		windows.CloseHandle(job)
		return
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, h)
		windows.CloseHandle(h)
	}
	if err != nil {
		windows.CloseHandle(job)
		return
	}
	g.job = job
}

func (g *processGroup) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}

// terminate has no gentle form here; closing stdin was the gentle step.
func (g *processGroup) terminate() { g.kill() }

func (g *processGroup) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	if g.process != nil {
		_ = g.process.Kill()
	}
}

// awaitExit leaves the waiting to the wait that follows.
func awaitExit(int) bool { return false }

// record has nothing to do: the job knows its members.
func (p *process) record() {}

func (p *process) sweep(force bool) {
	if force && !p.waitFor(0) {
		p.group.kill()
	}
}

func pipeInode(*os.File) uint64 { return 0 }
