package main

import (
	"bytes"
	"strconv"
	"time"

	"github.com/ostiary/ostiary/bench/internal/jsonscan"
	"github.com/ostiary/ostiary/bench/internal/mcp"
)

// Largest arguments of blob and slow.
const (
	maxBlob  = 64 << 20
	maxSleep = 600_000
)

type server struct {
	path     string
	pages    []string
	sessions sessions
	blob     []byte // filler, grown never: sliced
}

func newServer(path string, extra, page int) *server {
	return &server{path: path, pages: toolList(extra, page), blob: mcp.BlobText(1 << 20)}
}

// message is one JSON-RPC message, its parts raw and pointing into its text.
type message struct {
	id, method, name, version, metaVersion []byte
	args, cursor, token                    []byte
	isRequest                              bool
}

func parse(b []byte) (m message, err error) {
	var params, meta []byte
	err = jsonscan.Members(b, func(k, v []byte) {
		switch string(k) {
		case "id":
			m.id = v
		case "method":
			m.method, _ = jsonscan.Plain(v)
		case "params":
			params = v
		}
	})
	m.isRequest = len(m.id) > 0 && len(m.method) > 0 && string(m.id) != "null"
	if err != nil || params == nil {
		return m, err
	}
	err = jsonscan.Members(params, func(k, v []byte) {
		switch string(k) {
		case "name":
			m.name, _ = jsonscan.Plain(v)
		case "arguments":
			m.args = v
		case "_meta":
			meta = v
		case "protocolVersion":
			m.version, _ = jsonscan.Plain(v)
		case "cursor":
			m.cursor, _ = jsonscan.Plain(v)
		}
	})
	if err != nil || meta == nil {
		return m, err
	}
	err = jsonscan.Members(meta, func(k, v []byte) {
		switch string(k) {
		case "progressToken":
			m.token = v
		case mcp.MetaVersion:
			m.metaVersion, _ = jsonscan.Plain(v)
		}
	})
	return m, err
}

func (m *message) is(method string) bool { return string(m.method) == method }

// slow reports a call that sleeps, for how long, and in how many steps.
func (m *message) slow() (d time.Duration, steps int, ok bool) {
	if !m.is("tools/call") || string(m.name) != "slow" {
		return 0, 0, false
	}
	ms, steps := 0, 5
	jsonscan.Members(m.args, func(k, v []byte) {
		switch n := number(v); string(k) {
		case "ms":
			ms = n
		case "steps":
			steps = n
		}
	})
	return time.Duration(min(max(ms, 0), maxSleep)) * time.Millisecond, min(max(steps, 1), 1000), true
}

// answer appends the response to a request that needs no waiting. ok is false
// if there is no such method.
func (s *server) answer(out []byte, m *message, modern bool) (_ []byte, ok bool) {
	switch {
	case m.is("tools/call"):
		return s.call(out, m, modern), true
	case m.is("tools/list"):
		i, ok := s.pageOf(string(m.cursor))
		if !ok {
			return failure(out, m.id, -32602, "unknown cursor"), true
		}
		out = result(out, m.id, modern)
		if modern {
			out = append(out, `"ttlMs":300000,"cacheScope":"public",`...)
		}
		if i+1 < len(s.pages) {
			out = append(out, `"nextCursor":"`+cursor(i)+`",`...)
		}
		out = append(out, `"tools":[`...)
		out = append(out, s.pages[i]...)
		return append(out, `]}}`...), true
	case m.is("server/discover"):
		out = result(out, m.id, true)
		return append(out, `"supportedVersions":["`+mcp.ModernVersion+`","`+mcp.LegacyVersion+`"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"`+mcp.MetaServer+`":{"name":"bench-upstream","version":"1.0.0"}},"ttlMs":3600000,"cacheScope":"public"}}`...), true
	case m.is("initialize") && !modern:
		v := mcp.LegacyVersion
		if older := string(m.version); older == "2025-06-18" || older == "2025-03-26" {
			v = older
		}
		out = result(out, m.id, false)
		return append(out, `"protocolVersion":"`+v+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bench-upstream","version":"1.0.0"}}}`...), true
	case (m.is("ping") || m.is("logging/setLevel")) && !modern:
		out = result(out, m.id, false)
		return append(out, `"_meta":{}}}`...), true
	}
	return failure(out, m.id, -32601, "method not found"), false
}

func (s *server) call(out []byte, m *message, modern bool) []byte {
	switch string(m.name) {
	case "echo":
		var text []byte
		jsonscan.Members(m.args, func(k, v []byte) {
			if string(k) == "text" {
				text = v
			}
		})
		if len(text) < 2 || text[0] != '"' {
			return failure(out, m.id, -32602, "echo wants a string named text")
		}
		out = result(out, m.id, modern)
		out = append(out, `"content":[{"type":"text","text":`...)
		out = append(out, text...)
		return append(out, `}],"isError":false}}`...)
	case "blob":
		n := -1
		jsonscan.Members(m.args, func(k, v []byte) {
			if string(k) == "n" {
				n = number(v)
			}
		})
		if n < 0 || n > maxBlob {
			return failure(out, m.id, -32602, "blob wants an integer named n, 0 to 67108864")
		}
		out = openText(out, m.id, modern)
		if n <= len(s.blob) {
			out = append(out, s.blob[:n]...)
		} else {
			out = append(out, mcp.BlobText(n)...)
		}
		return closeText(out)
	}
	if bytes.HasPrefix(m.name, []byte("extra_")) {
		return closeText(append(openText(out, m.id, modern), m.name...))
	}
	return failure(out, m.id, -32602, "unknown tool")
}

// slept is the answer of the tool slow.
func slept(out []byte, m *message, d time.Duration, modern bool) []byte {
	out = append(openText(out, m.id, modern), "slept "...)
	out = strconv.AppendInt(out, d.Milliseconds(), 10)
	return closeText(append(out, " ms"...))
}

func progress(out []byte, m *message, step, steps int) []byte {
	out = append(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	out = append(out, m.token...)
	out = append(out, `,"progress":`...)
	out = strconv.AppendInt(out, int64(step), 10)
	out = append(out, `,"total":`...)
	out = strconv.AppendInt(out, int64(steps), 10)
	return append(out, `}}`...)
}

func acknowledged(out []byte, m *message) []byte {
	out = append(out, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+mcp.MetaSubscription+`":`...)
	out = append(out, m.id...)
	return append(out, `},"notifications":{"toolsListChanged":true}}}`...)
}

func result(out, id []byte, modern bool) []byte {
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	out = append(out, `,"result":{`...)
	if modern {
		out = append(out, `"resultType":"complete",`...)
	}
	return out
}

func openText(out, id []byte, modern bool) []byte {
	return append(result(out, id, modern), `"content":[{"type":"text","text":"`...)
}

func closeText(out []byte) []byte { return append(out, `"}],"isError":false}}`...) }

// failure appends an error response; msg is written as it is.
func failure(out, id []byte, code int, msg string) []byte {
	if len(id) == 0 {
		id = []byte("null")
	}
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	out = append(out, `,"error":{"code":`...)
	out = strconv.AppendInt(out, int64(code), 10)
	out = append(out, `,"message":"`...)
	out = append(out, msg...)
	return append(out, `"}}`...)
}

// number reads an integer, which some gateways rewrite as 5.0 or 1e5; -1 if
// it is none.
func number(v []byte) int {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != float64(int(f)) {
		return -1
	}
	return int(f)
}
