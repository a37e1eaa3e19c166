//go:build linux

package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestSampleSeesChildrenAndTheirTime(t *testing.T) {
	// A shell that burns processor time in a child and then waits on stdin.
	cmd := exec.Command("sh", "-c", "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); cat; true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no shell: %v", err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	var u Usage
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if u, err = Sample(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if len(u.PIDs) == 2 && u.Tree-u.Root >= 20*time.Millisecond {
			break
		}
	}
	if len(u.PIDs) != 2 || u.Tree <= u.Root {
		t.Errorf("tree %v, root %v, total %v", u.PIDs, u.Root, u.Tree)
	}
	if u.RSS < 100<<10 {
		t.Errorf("RSS %d", u.RSS)
	}
}

func TestClockAgreesWithStat(t *testing.T) {
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
	}
	fine, err := clock(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s, ok := readStat(os.Getpid())
	if !ok {
		t.Fatal("no stat of this process")
	}
	if diff := (fine - s.own).Abs(); diff > 50*time.Millisecond {
		t.Errorf("clock %v, stat %v", fine, s.own)
	}
}

func TestGoneProcessIsAnError(t *testing.T) {
	if _, err := Sample(1 << 30); err == nil {
		t.Error("no error")
	}
}
