package ostiary_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ostiary/ostiary/internal/exampleserver"
)

// what can decide and call without a token is a socket that this user alone can open, in a directory of theirs.
func TestA50_TheOperatorsSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, exported)
	p := serve(t, dir)
	for _, name := range []string{filepath.Join(dir, "data"), filepath.Join(dir, "data", "admin.sock")} {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
	must(t, p.ask("count", `{}`), `"status":"succeeded"`)
}

// secretsInHand are all the secrets that the gateway of these tests is given, by the variable that they are in.
var secretsInHand = map[string]string{
	"OSTIARY_TOKEN": testToken, "EX_SECRET": "canary-of-ex-5f0e1c7d9a", "OTHER_SECRET": "canary-of-other-77ab03e1c2", "WEB_SECRET": "canary-of-web-c0ffee1234", "AMBIENT_SECRET": "canary-of-nobody-9d8c7b6a5f",
}

func inHand() (env, secrets []string) {
	for name, value := range secretsInHand {
		env, secrets = append(env, name+"="+value), append(secrets, value)
	}
	return env, secrets
}

// A-58, F-62, F-20: of the secrets that the gateway is given, each gets to whom it is meant for, and nowhere else: not into
// another child's environment, not into any command line, not into the log, not into the data directory. Neither do tokens
// that somebody tries, nor what is in the arguments of calls.
func TestA58_SecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(exampleserver.Handler(exampleserver.Options{Bearer: secretsInHand["WEB_SECRET"]}))
	t.Cleanup(up.Close)
	dir := t.TempDir()
	stdio := func(pkg, secret string) string {
		return fmt.Sprintf("[provider.%s]\ntransport = \"stdio\"\ncommand = %q\nenv = { %s = \"example-server\", WHO = %q }\nenv_from = [%q]\ntrust_tier = \"CONTROLLED_LOCAL\"\nallowed_tools = [\"echo\", \"refuse\", \"misbehave\"]\nclose_seconds = 2\n[provider.%s.policy]\navailable = true\napproval = \"never\"\n", pkg, self(t), roleEnv, pkg, secret, pkg)
	}
	config := "[server]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"OSTIARY_TOKEN\"\n" + stdio("ex", "EX_SECRET") + stdio("other", "OTHER_SECRET") +
		fmt.Sprintf("[provider.web]\ntransport = \"http\"\nurl = \"%s/mcp\"\ncredential = \"env:WEB_SECRET\"\ntrust_tier = \"CONTROLLED_LOCAL\"\nallowed_tools = [\"echo\"]\n[provider.web.policy]\navailable = true\napproval = \"never\"\n", up.URL) +
		"[export.default]\nnaming = \"flat\"\ntools = [\"aur.mcp.ex.echo\", \"aur.mcp.ex.refuse\", \"aur.mcp.ex.misbehave\", \"aur.mcp.other.echo\", \"aur.mcp.web.echo\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "ostiary.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env, secrets := inHand()
	p := serve(t, dir, env...)
	for _, tool := range []string{"ex__echo", "other__echo", "web__echo"} {
		must(t, p.ask(tool, `{"text":"plain"}`), `"status":"succeeded"`)
	}
	const tried = "canary-of-somebody-who-tries-4e3d2c"
	secrets = append(secrets, tried, aSecret)
	for _, arguments := range []string{`{"text":"` + aSecret + `"}`, `{"password":"` + tried + `"}`, `{"text":"Bearer ` + testToken + `"}`} {
		p.ask("ex__echo", arguments)
		p.ask("ex__refuse", `{"message":`+strconv.Quote(arguments)+`}`)
	}
	p.ask("ex__misbehave", `{"how":"not_json"}`)
	for _, e := range []edit{as(tried), with("Authorization", "Basic "+tried), with("Cookie", tried), with("Mcp-Session-Id", tried), with("Mcp-Name", tried), with("Origin", "https://"+tried)} {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+p.addr+"/v1/mcp?access_token="+tried, strings.NewReader(`{"`+tried+`":`))
		if err != nil {
			t.Fatal(err)
		}
		modern("tools/call", "x")(req)
		e(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		must(t, readAll(resp.Body), "!"+tried)
		_ = resp.Body.Close()
	}

	whose := map[string]string{"ex": "EX_SECRET", "other": "OTHER_SECRET"}
	children := p.children()
	if len(children) != 2 {
		t.Errorf("the gateway has %d children", len(children))
	}
	for _, pid := range append(children, p.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if bytes.Contains(line, []byte(s)) {
				t.Errorf("F-62: the command line of %d has a secret in it: %q", pid, line)
			}
		}
	}
	for _, pid := range children {
		around, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		who := ""
		for v := range bytes.SplitSeq(around, []byte{0}) {
			if name, ok := bytes.CutPrefix(v, []byte("WHO=")); ok {
				who = string(name)
			}
		}
		for name, value := range secretsInHand {
			if got := bytes.Contains(around, []byte(value)); got != (name == whose[who]) {
				t.Errorf("the environment of %q has %s: %v", who, name, got)
			}
		}
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("the gateway ends with %v: %s", s, p.stderr())
	}
	for _, s := range secrets {
		if strings.Contains(p.stderr(), s) {
			t.Errorf("the log has %s in it: %s", s, p.stderr())
		}
	}
	checkStopped(t, filepath.Join(dir, "data"), secrets...)
}

// F-63: a gateway that is brought down in the midst of calls leaves no core, though limits and GOTRACEBACK would have it,
// and says where it was, but nothing of what it knew. The call is on record as unknown afterwards.
func TestF63_NoDumps(t *testing.T) {
	t.Parallel()
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &unlimited); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	counter := filepath.Join(dir, "ran")
	writeConfig(t, dir, strings.Replace(exported, `["aur`, `["aur.mcp.ex.hang", "aur`, 1), "-counter", counter)
	env, secrets := inHand()
	p := serve(t, dir, append(env, "GOTRACEBACK=crash")...)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && (f[4] != "0" || f[5] != "0") {
			t.Errorf("%s (that of this process: %d, %d)", line, unlimited.Cur, unlimited.Max)
		}
	}
	const known = "canary-in-a-call-0a1b2c3d4e"
	done := make(chan string, 1)
	go func() { done <- p.ask("hang", `{"ms":60000,"note":"`+known+`"}`) }()
	waitIntents(t, nil, filepath.Join(dir, "data"), 1)
	s := p.end(syscall.SIGQUIT)
	if answer := <-done; answer != "" {
		t.Errorf("the call was answered: %s", answer)
	}
	if s.CoreDump() {
		t.Error("a core was dumped")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "core*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	must(t, p.stderr(), "goroutine ")
	for _, secret := range append(secrets, known) {
		if strings.Contains(p.stderr(), secret) {
			t.Errorf("the traces have %s in them", secret)
		}
	}
	waitGone(t, counter)
	p = serve(t, dir, env...)
	p.end(syscall.SIGTERM)
	checkStopped(t, filepath.Join(dir, "data"), append(secrets, known)...)
	g := &gateway{t: t, dir: dir}
	must(t, g.records(), `"code":"interrupted"`)
}

// what the environment says changes nothing of what is checked: a gateway with switches that would is not started,
// and the rest goes neither to providers nor anywhere else.
func TestA64_TheEnvironmentSwitchesNothingOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, exported)
	for _, v := range []string{"MCPGODEBUG=disablelocalhostprotection=1", "GODEBUG=x509sha1=1", "GODEBUG=gctrace=0,tls10server=1"} {
		p := launch(t, command(t, dir, v))
		if s := p.end(0); s.ExitStatus() != 2 {
			t.Errorf("with %s the gateway ends with %v: %s", v, s, p.stderr())
		}
		must(t, p.stderr(), "unset "+strings.SplitN(v, "=", 2)[0], "!ready")
		if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
			t.Errorf("with %s something was started", v)
		}
	}
	proxy := canary(t)
	keys := filepath.Join(dir, "keys.log")
	hostile := []string{"LD_PRELOAD=", "LD_LIBRARY_PATH=/tmp/none", "LD_AUDIT=", "BASH_ENV=/tmp/none", "ENV=/tmp/none", "NODE_OPTIONS=--require=/tmp/none", "PYTHONPATH=/tmp/none", "PYTHONSTARTUP=/tmp/none", "PERL5OPT=-Mnone", "RUBYOPT=-rnone",
		"JAVA_TOOL_OPTIONS=-javaagent:none", "GIT_SSH_COMMAND=none", "HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy, "http_proxy=" + proxy, "NO_PROXY=", "SSLKEYLOGFILE=" + keys, "GOTRACEBACK=crash"}
	p := serve(t, dir, hostile...)
	must(t, p.ask("count", `{}`), `"status":"succeeded"`)
	for _, pid := range p.children() {
		around, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range hostile {
			if name, _, _ := strings.Cut(v, "="); bytes.Contains(append([]byte{0}, around...), []byte("\x00"+name+"=")) {
				t.Errorf("a child was handed %s", name)
			}
		}
	}
	if _, err := os.Stat(keys); err == nil {
		t.Error("keys of connections were written down")
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("it ends with %v: %s", s, p.stderr())
	}
	checkStopped(t, filepath.Join(dir, "data"), testToken)
}
