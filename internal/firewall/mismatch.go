package firewall

import (
	"bytes"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// CodeMismatch says that the parts of a result contradict each other.
const CodeMismatch Code = "text_structured_mismatch"

// scalars are the scalar values of a JSON value by the last name above them; a value that a name has twice is not kept.
func scalars(raw []byte) (map[string]string, bool) {
	out, twice := map[string]string{}, map[string]bool{}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for len(out) < 2000 {
		k := d.PeekKind()
		if k == '{' || k == '[' || k == '}' || k == ']' {
			if _, err := d.ReadToken(); err != nil {
				return nil, false
			}
		} else {
			v, err := d.ReadValue()
			if err == io.EOF {
				return out, len(out) > 0
			}
			if err != nil {
				return nil, false
			}
			name := ""
			if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 0 {
				name = d.StackPointer().LastToken()
			}
			if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 || name == "" {
				continue // a name, or a value in an array
			}
			if old, ok := out[name]; ok && old != string(v) {
				twice[name] = true
			}
			out[name] = string(v)
		}
		if d.StackDepth() == 0 {
			for n := range twice {
				delete(out, n)
			}
			_, err := d.ReadToken()
			return out, err == io.EOF
		}
	}
	return nil, false
}

var (
	saysGood = regexp.MustCompile(`(?i)^\W*(ok|success(ful(ly)?)?|done|completed?|passed|all (good|clear|tests passed)|no (errors?|issues?|problems?|vulnerabilities)( found)?|approved|allowed|safe|clean|valid|成功|完成|通过|正常|没有(错误|问题)|安全)\b|^\W*(成功|完成|通过|正常|没有错误|没有问题|已批准|安全)`)
	saysBad  = regexp.MustCompile(`(?i)^\W*(error|fail(ed|ure)?|denied|rejected|refused|unsafe|invalid|错误|失败|拒绝|不通过)\b|^\W*(错误|失败|拒绝|不通过|已拒绝)`)
	goodWord = map[string]bool{`"ok"`: true, `"success"`: true, `"succeeded"`: true, `"done"`: true, `"completed"`: true, `"passed"`: true, `"approved"`: true, `"allowed"`: true, `"safe"`: true, `"clean"`: true, `"valid"`: true, `"成功"`: true, `"通过"`: true}
	badWord  = map[string]bool{`"error"`: true, `"failed"`: true, `"failure"`: true, `"denied"`: true, `"rejected"`: true, `"refused"`: true, `"unsafe"`: true, `"infected"`: true, `"malicious"`: true, `"blocked"`: true, `"invalid"`: true, `"失败"`: true, `"错误"`: true, `"拒绝"`: true}
)

// mismatch compares the text blocks with structuredContent. Text that is JSON must not give another value to a name; text
// that is prose must not say that something went well which structuredContent says went wrong, or the other way round.
// Nothing else is compared: prose cannot be.
func (s *scan) mismatch(content, structured int32) {
	if content < 0 {
		return
	}
	n := s.doc.nodes[structured]
	raw := s.doc.raw[n.start:n.end]
	if len(raw) > 1<<20 {
		return
	}
	var have map[string]string
	for i := range s.doc.texts {
		t := &s.doc.texts[i]
		if t.isName || t.name < 0 || t.parent < 0 || s.doc.nodes[t.parent].parent != content || s.doc.nameOf(t.name) != "text" || len(t.value) > 1<<20 {
			continue
		}
		if have == nil {
			var ok bool
			if have, ok = scalars(raw); !ok {
				return
			}
		}
		s.spend(len(t.value) / 8)
		text := bytes.TrimSpace(t.value)
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			other, ok := scalars(text)
			if !ok {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(other)) {
				if h, ok := have[name]; ok && !sameValue(h, other[name]) {
					s.add(located{code: CodeMismatch, text: int32(i), fixed: true, excerpt: "different values of " + s.excerpt(cut([]byte(name), 60))})
					break
				}
			}
			continue
		}
		if good, bad := outcome(have); bad && saysGood.Match(text) || good && saysBad.Match(text) {
			s.add(located{code: CodeMismatch, text: int32(i), fixed: true, excerpt: "the text and structuredContent tell opposite outcomes"})
		}
	}
}

// outcome is whether the names that tell how something went tell that it went well, or badly.
func outcome(have map[string]string) (good, bad bool) {
	for _, name := range []string{"status", "state", "result", "outcome", "verdict", "decision"} {
		v := strings.ToLower(have[name])
		good, bad = good || goodWord[v], bad || badWord[v]
	}
	for _, name := range []string{"ok", "success", "succeeded", "passed", "valid", "approved", "safe", "allowed"} {
		good, bad = good || have[name] == "true", bad || have[name] == "false"
	}
	return good && !bad, bad && !good
}

// sameValue compares scalars as they are written: strings by what they say, numbers by their canonical form.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, y := jsontext.Value(a), jsontext.Value(b)
	return x.Kind() == y.Kind() && x.Canonicalize() == nil && y.Canonicalize() == nil && string(x) == string(y)
}
