//go:build linux

package target

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/bench/internal/proc"
)

func write(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "targets.json")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

const two = `[
 {"name":"a","url":"http://127.0.0.1:$PORT","path":"/mcp","era":"modern","headers":{"Authorization":"Bearer ${KEY}$$1"},"start":{"cmd":["$BIN/x"]}},
 {"name":"b","url":"http://localhost:81","path":"/b","era":"legacy","tool":"up__echo","needs":["a"]},
 {"name":"c","url":"http://[::1]:82","path":"/c","era":"legacy","process_of":"a"},
 {"name":"d","url":"http://127.0.0.1:83","path":"/$UNSET_HERE","era":"legacy"}]`

func TestLoad(t *testing.T) {
	t.Setenv("PORT", "80")
	t.Setenv("KEY", "k$x")
	t.Setenv("BIN", "/bin")
	all, names, err := Load(write(t, two), []string{"c", "b"})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, x := range all {
		order = append(order, x.Name)
	}
	if got := strings.Join(order, " ") + "/" + strings.Join(names, " "); got != "a c b/c b" {
		t.Errorf("order %s", got)
	}
	a := all[0]
	if a.Addr != "127.0.0.1:80" || a.Headers["Authorization"] != "Bearer k$x$1" || a.Start.Cmd[0] != "/bin/x" || a.Start.ReadyTCP != a.Addr {
		t.Errorf("a = %+v %+v", a, a.Start)
	}
	if got := all[2].ToolNamed("blob"); got != "up__blob" {
		t.Errorf("blob is %s", got)
	}
	if _, _, err := Load(write(t, two), nil); err == nil || !strings.Contains(err.Error(), "UNSET_HERE") {
		t.Errorf("unset variable: %v", err)
	}
}

func TestExampleFile(t *testing.T) {
	for _, v := range []string{"BIN", "RUN", "TBXARK", "MCPPROXY_GO", "MCPPROXY_KEY", "VMCP", "PUNKPEYE", "GATEWAY_TOKEN"} {
		t.Setenv(v, "x")
	}
	t.Setenv("GATEWAY_PORT", "9150")
	all, _, err := Load("../../targets.example.json", nil)
	if err != nil || len(all) != 11 {
		t.Errorf("%d targets, %v", len(all), err)
	}
}

func TestFaultsOfTheFile(t *testing.T) {
	target := func(fields string) string {
		return `[{"name":"a","url":"http://127.0.0.1:1","path":"/mcp","era":"modern"` + fields + `}]`
	}
	for text, want := range map[string]string{
		target(`,"colour":"red"`):                                             "colour",
		target(``) + `x`:                                                      "follows",
		target(`,"url":"http://10.0.0.1:80"`):                                 "loopback",
		target(`,"url":"https://127.0.0.1:80"`):                               "http://",
		target(`,"era":"new"`):                                                "era",
		target(`,"path":"mcp"`):                                               "slash",
		target(`,"needs":["z"]`):                                              `"z"`,
		target(`,"needs":["a"]`):                                              "needs itself",
		target(`,"headers":{"a":"b\r\nc"}`):                                   "malformed",
		target(`,"pid_file":"p","start":{"cmd":["x"]}`):                       "one of",
		target(`,"start":{"cmd":[]}`):                                         "cmd",
		target(`,"start":{"cmd":["x"],"ready_url":"http://example.com:80/"}`): "loopback",
		`[{"name":""}]`:                                                       "empty",
	} {
		if _, _, err := Load(write(t, text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What was started is ended, and what it has started in turn, even if both
// ignore a polite request.
func TestDownEndsTheWholeTree(t *testing.T) {
	x := &Target{Name: "a", Addr: "127.0.0.1:1", Start: &Start{
		Cmd: []string{"sh", "-c", `trap "" TERM; setsid sleep 300 & sleep 300; :`},
	}}
	var g Group
	p, err := g.start(x)
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	g.order = append(g.order, p)
	var tree proc.Usage
	for end := time.Now().Add(5 * time.Second); len(tree.PIDs) < 3; time.Sleep(20 * time.Millisecond) {
		if tree, err = proc.Sample(p.cmd.Process.Pid); err != nil || time.Now().After(end) {
			t.Fatalf("tree %v %v", tree.PIDs, err)
		}
	}
	g.Down()
	time.Sleep(100 * time.Millisecond)
	for _, pid := range tree.PIDs {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
			t.Errorf("%d lives: %s", pid, b)
		}
	}
}

// In one target's turn, all that it does not need stands still.
func TestOnlyPausesTheOthers(t *testing.T) {
	var all []*Target
	var g Group
	defer g.Down()
	for _, x := range []*Target{
		{Name: "up"},
		{Name: "a", Needs: []string{"up"}},
		{Name: "b", Needs: []string{"up"}},
		{Name: "b2", ProcessOf: "b"},
	} {
		all = append(all, x)
		if x.ProcessOf != "" {
			continue
		}
		x.Addr, x.Start = "127.0.0.1:1", &Start{Cmd: []string{"sleep", "300"}}
		p, err := g.start(x)
		if err != nil {
			t.Skipf("no sleep: %v", err)
		}
		g.order = append(g.order, p)
	}
	states := func() (s string) {
		time.Sleep(50 * time.Millisecond)
		for _, p := range g.order {
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
			_, after, _ := strings.Cut(string(b), ") ")
			s += after[:1]
		}
		return s
	}
	for _, c := range []struct {
		turn int
		want string
	}{{1, "SST"}, {3, "STS"}, {0, "STT"}, {2, "STS"}} {
		g.Only(all[c.turn], all)
		if got := states(); got != c.want {
			t.Errorf("turn of %s: %s, want %s", all[c.turn].Name, got, c.want)
		}
	}
}

func TestStartRefusesATakenAddress(t *testing.T) {
	ln := listen(t)
	x := &Target{Name: "a", Addr: ln, Start: &Start{Cmd: []string{"true"}}}
	var g Group
	if _, err := g.start(x); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("got %v", err)
	}
}

func TestEndedBeforeReady(t *testing.T) {
	x := &Target{Name: "a", Addr: "127.0.0.1:1", Start: &Start{Cmd: []string{"false"}, ReadyTCP: "127.0.0.1:1", ReadyIn: 10}}
	var g Group
	if err := g.Up(t.Context(), x); err == nil || !strings.Contains(err.Error(), "ended before") {
		t.Errorf("got %v", err)
	}
	g.Down()
}

func listen(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}
