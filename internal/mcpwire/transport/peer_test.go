//go:build unix

package transport

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// peerEnv makes the test binary play a server instead of running tests: its value names the part.
const peerEnv = "OSTIARY_TEST_PEER"

func TestMain(m *testing.M) {
	if part := os.Getenv(peerEnv); part != "" {
		playPeer(part)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peer is a hostile or harmless server on stdio.
type peer struct {
	in  *bufio.Reader
	out *os.File
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// next reads a message of the gateway; the process ends with the stream.
func (p *peer) next() content.Frame {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	f, err := content.ParseFrame(line, content.FrameLimits{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer: bad message:", err)
		os.Exit(9)
	}
	return f
}

func (p *peer) answer(id []byte) { p.say(`{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}`, id) }

func playPeer(part string) {
	p := &peer{in: bufio.NewReader(os.Stdin), out: os.Stdout}
	part, arg, _ := strings.Cut(part, ":")
	switch part {
	case "echo": // answers with the params
		for {
			f := p.next()
			if f.Kind == content.Request {
				p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, f.Params)
			}
		}
	case "methods": // the method says what to do
		for {
			p.byMethod(p.next())
		}
	case "exit":
		n, _ := strconv.Atoi(arg)
		os.Exit(n)
	case "deaf": // reads nothing and ignores what it can
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "reads-then-ignores":
		signal.Ignore(syscall.SIGTERM)
		for {
			if _, err := p.in.ReadBytes('\n'); err != nil {
				time.Sleep(time.Hour)
			}
		}
	case "family": // a grandchild in a session of its own, one that was forked twice, and one in the group
		spawn := func(part string, setsid bool) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), peerEnv+"="+part)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			setSession(cmd, setsid)
			if cmd.Start() == nil {
				p.say(`{"jsonrpc":"2.0","method":"notifications/pid","params":{"pid":%d}}`, cmd.Process.Pid)
			}
		}
		spawn("deaf", true)
		spawn("deaf", false)
		spawn("orphanage", true)
		for {
			f := p.next()
			if f.Kind == content.Request {
				p.answer(f.ID)
			}
		}
	case "orphanage": // starts a process and dies, so that nobody is its parent
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), peerEnv+"=deaf")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		setSession(cmd, true)
		if cmd.Start() == nil {
			p.say(`{"jsonrpc":"2.0","method":"notifications/pid","params":{"pid":%d}}`, cmd.Process.Pid)
		}
	case "env":
		for _, kv := range os.Environ() {
			fmt.Fprintln(os.Stderr, kv)
		}
	case "stderr":
		fmt.Fprintf(os.Stderr, "first\n%s\nlast \x1b[31mred\x1b[0m key=%s\n", strings.Repeat(strings.Repeat("x", 99)+"\n", 3000), os.Getenv("THE_KEY"))
		p.answer(p.next().ID)
		p.next()
	}
}

// byMethod lets a test say what happens, call by call.
func (p *peer) byMethod(f content.Frame) {
	id := f.ID
	switch f.Method {
	case "ok":
		p.answer(id)
	case "silent":
	case "twice":
		p.answer(id)
		p.answer(id)
	case "wrong-id":
		p.say(`{"jsonrpc":"2.0","id":"g999999","result":{}}`)
	case "wrong-type": // the number instead of the string
		p.say(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	case "error":
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no","data":{"big":12345678901234567890}}}`, id)
	case "cut":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, id)
	case "both":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":""}}`, id)
	case "neither":
		p.say(`{"jsonrpc":"2.0","id":%s}`, id)
	case "duplicate-key":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}`, id)
	case "bad-utf8":
		p.say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":\"\xff\"}}", id)
	case "batch":
		p.say(`[{"jsonrpc":"2.0","id":%s,"result":{}}]`, id)
	case "noise":
		p.say("\xef\xbb\xbfStarting server on stdio ...")
		p.say("[INFO] ready")
		p.say("")
		p.say("\r")
		p.say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\r", id)
	case "noise-flood":
		for range 1000 {
			p.say("listening")
		}
	case "garbage-flood":
		for range 1000 {
			p.say(`{"jsonrpc":"2.0",`)
		}
	case "stray-flood":
		for i := range 1000 {
			p.say(`{"jsonrpc":"2.0","id":"s%d","result":{}}`, i)
		}
	case "request-flood":
		for i := range 5000 {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}`, i)
		}
		p.answer(id)
	case "notify":
		for i := range 100 {
			p.say(`{"jsonrpc":"2.0","method":"notifications/n","params":{"i":%d,"big":12345678901234567890}}`, i)
		}
		p.answer(id)
	case "large":
		n, _ := strconv.Atoi(string(content.Member(f.Params, "bytes")))
		p.say(`{"result":{"text":"%s"},"jsonrpc":"2.0","id":%s}`, strings.Repeat("a", n), id)
	case "endless":
		chunk := []byte(strings.Repeat("a", 64<<10))
		for {
			if _, err := p.out.Write(chunk); err != nil {
				os.Exit(0)
			}
		}
	case "exit":
		os.Exit(3)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "answer-then-exit":
		p.answer(id)
		os.Exit(0)
	case "close-stdout":
		p.out.Close()
	case "stop-reading":
		time.Sleep(time.Hour)
	case "guess": // answers what has not been asked yet
		p.say(`{"jsonrpc":"2.0","id":"g2","result":{"forged":true}}`)
		p.answer(id)
	}
}

func startPeer(t *testing.T, part string, change func(*StdioOptions)) *StdioCarrier {
	t.Helper()
	o := StdioOptions{Command: os.Args[0], Env: append(os.Environ(), peerEnv+"="+part)}
	if change != nil {
		change(&o)
	}
	c, err := StartStdio(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	return c
}
