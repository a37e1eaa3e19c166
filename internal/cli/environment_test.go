package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// what would change checks from outside is refused; what says how the runtime works is not.
func TestA64_DebugSwitches(t *testing.T) {
	for _, c := range []struct {
		name, value, refused string
	}{
		{"MCPGODEBUG", "", ""},
		{"MCPGODEBUG", "disablelocalhostprotection=1", "MCPGODEBUG"},
		{"GODEBUG", "", ""},
		{"GODEBUG", "gctrace=1,netdns=go", ""},
		{"GODEBUG", " gctrace=1 , ", ""},
		{"GODEBUG", "gctrace=1,x509sha1=1", "x509sha1"},
		{"GODEBUG", "tls10server=1", "tls10server"},
		{"GODEBUG", "httplaxcontentlength", "httplaxcontentlength"},
		{"GODEBUG", "execerrdot=0", "execerrdot"},
		{"GODEBUG", "GCTRACE=1", "GCTRACE"},
	} {
		err := refuseDebugSwitches(func(name string) (string, bool) { return c.value, name == c.name })
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}

// deaf takes nothing until it is told to.
type deaf struct {
	hear chan struct{}

	mu  sync.Mutex // guards got
	got bytes.Buffer
}

func (d *deaf) Write(b []byte) (int, error) {
	<-d.hear
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.got.Write(b)
}

func (d *deaf) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.got.String()
}

// F-50: lines that nobody reads are left out, and counted; lines that somebody reads are written in order, and in time.
func TestF50_Patient(t *testing.T) {
	d := &deaf{hear: make(chan struct{})}
	p := newPatient(d)
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if n, err := p.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	close(d.hear)
	if err := <-p.last; err != nil { // the first line was taken after all
		t.Error(err)
	}
	p.last <- nil
	for _, line := range []string{"four\n", "five\n"} {
		if n, err := p.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if want := "one\n(2 lines that nobody was there to read were left out)\nfour\nfive\n"; d.String() != want {
		t.Errorf("got %q, want %q", d.String(), want)
	}
}
