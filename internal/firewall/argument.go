package firewall

import (
	"bytes"
	"regexp"
)

// The codes of arguments.
const (
	CodePathTraversal Code = "path_traversal"
	CodeLeadingDash   Code = "leading_dash"
	CodeControlInPath Code = "control_in_path"
	CodeOpaquePayload Code = "opaque_payload"
)

var (
	traversal = regexp.MustCompile(`(?i)(^|[/\\=:,;]|%2f|%5c)(\.|%2e){2}([/\\]|%2f|%5c|$)`)
	// An option by itself, or with its value beside it; with blanks in it only if something is assigned, for prose may begin
	// with a dash.
	option       = regexp.MustCompile(`^(-[A-Za-z]([A-Za-z]{0,8}|[A-Za-z]*[=:/.~].*)|--[A-Za-z][A-Za-z0-9-]*(=.*)?)$`)
	optionAssign = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9-]*|-[A-Za-z] +[A-Za-z][A-Za-z0-9-]*)=`)
)

// argument inspects one string that is to leave.
func (s *scan) argument(v *view, shape *shape) {
	if v.depth > 0 && v.how != "percent-decoded" {
		return
	}
	name := []byte(lower(string(v.name)))
	t := v.text
	inPath := pathName(name)
	line := bytes.IndexByte(t, '\n') < 0 && len(t) < 4096
	if line && (inPath || bytes.IndexByte(t, ' ') < 0) && !bytes.Contains(t, []byte("://")) && bytes.Contains(t, []byte("..")) || shape.percent > 1 && line {
		if m := traversal.FindIndex(t); m != nil && (bytes.IndexByte(t, ' ') < 0 || inPath) {
			s.find(v, CodePathTraversal, m[0], m[1])
		}
	}
	if v.depth == 0 && len(t) > 1 && t[0] == '-' && line && !optionName(name) && (bytes.IndexByte(t, ' ') < 0 && option.Match(t) || optionAssign.Match(t)) {
		s.find(v, CodeLeadingDash, 0, len(t))
	}
	if v.depth == 0 && s.linkField(v) {
		s.uri(v)
	}
	if v.depth == 0 && !payloadName(name) {
		for _, r := range shape.runs {
			if r.to-r.from >= 1024 && entropy(t[r.from:r.to]) > 3.3 && bytes.IndexByte(t[r.from:min(r.to, r.from+400)], '.') < 0 && opaque(bytes.ReplaceAll(t[r.from:min(r.to, r.from+400)], []byte("~"), nil)) {
				s.find(v, CodeOpaquePayload, r.from, r.to)
			}
		}
	}
}

// controls inspects the string as it stands, before control characters are normalised away.
func (s *scan) controls(v *view) {
	if !pathName([]byte(lower(string(v.name)))) && !bytes.HasPrefix(v.text, []byte("/")) {
		return
	}
	if i := bytes.IndexAny(v.text, "\x00\r\n"); i >= 0 && (v.text[i] == 0 || pathName([]byte(lower(string(v.name))))) {
		s.find(v, CodeControlInPath, i, i+1)
	}
}

// pathName says that a member of this name holds a path or a name that a program is given.
func pathName(name []byte) bool {
	for _, w := range []string{"path", "file", "dir", "cwd", "root", "folder", "repo", "branch", "ref", "target", "source", "dest", "uri"} {
		if bytes.Contains(name, []byte(w)) {
			return !bytes.Contains(name, []byte("content")) && !bytes.Contains(name, []byte("source_code")) && !bytes.Contains(name, []byte("sourcecode"))
		}
	}
	return false
}

// optionName says that a member of this name is there for options.
func optionName(name []byte) bool {
	for _, w := range []string{"arg", "flag", "option", "param", "switch", "command", "cmd"} {
		if bytes.Contains(name, []byte(w)) {
			return true
		}
	}
	return false
}

// payloadName says that a member of this name is there for encoded bytes.
func payloadName(name []byte) bool {
	for _, w := range []string{"data", "blob", "content", "base64", "image", "audio", "video", "file", "bytes", "body", "attachment", "binary", "payload", "buffer", "archive", "certificate", "signature", "state", "cursor", "code", "script", "diff", "patch"} {
		if bytes.Contains(name, []byte(w)) {
			return true
		}
	}
	return false
}
