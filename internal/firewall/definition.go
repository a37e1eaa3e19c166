package firewall

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// The codes of definitions.
const (
	CodeSensitivePath  Code = "sensitive_path"
	CodeOtherTool      Code = "other_tool"
	CodeLongName       Code = "long_name"
	CodeBlankRun       Code = "blank_run"
	CodeMarkup         Code = "hiding_markup"
	CodeEncodedBlob    Code = "encoded_blob"
	CodeAskedParameter Code = "asked_parameter"
	CodeMixedScript    Code = "mixed_script"
	CodeExternalRef    Code = "external_ref"
	CodeMirroredSecret Code = "mirrored_secret"
)

var (
	definitionPath   = regexp.MustCompile(`(?i)(~/?\.(ssh|aws|cursor|config/|gnupg|kube|netrc|npmrc|docker|bash|zsh|env|claude|codex)|\bid_(rsa|ed25519|ecdsa)\b|/etc/(passwd|shadow)|\.aws/credentials|\.ssh/|\.cursor/mcp\.json|\bmcp\.json\b|\.git-credentials|\.kube/config|claude_desktop_config|\bwallet\.dat\b|/proc/self/|\$HOME/\.|%APPDATA%|~/Library/Keychains|authorized_keys|\.bash_history|169\.254\.169\.254)`)
	definitionMarkup = regexp.MustCompile(`(?is)(<!--.{3,}?-->|<details\b|<summary\b|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|<!\[CDATA\[|<script\b|<style\b|<iframe\b|\[//\]:\s*#)`)
	askedParameter   = regexp.MustCompile(`(?i)^_*(sidenote|side_note|(conversation|chat|message|session)_?(history|context|log|transcript)|full_?(conversation|context|prompt)|system_?prompt|(available_?)?tools?_?list|list_?of_?tools|all_?tools|(previous|prior|all|original)_?(messages|prompts?|conversation)|user_?(prompt|query_?history)|model_?name|llm_?(context|name)|chain_?of_?thought|hidden_?context|internal_?(notes|context)|secret_?notes|env(ironment)?_?(dump|vars?_?dump)|full_?history)_*$`)
	askedText        = regexp.MustCompile(`(?i)(full|entire|complete|whole|all\s+(of\s+)?the|verbatim|previous|prior)\s+(\w+\s+){0,2}(conversation|chat\s+history|message\s+history|system\s+prompt|chain\s+of\s+thought|context\s+window|prompt\s+history)|(contents?|content)\s+of\s+(the\s+)?[~/]|(完整|全部|所有)(的)?(对话|聊天|上下文|历史消息|系统提示)|\b(list|names?|definitions?)\s+of\s+(all\s+)?(the\s+)?(available|other|installed|connected)\s+(\w+\s+)?(tools|mcp\s+servers)`)
	identifier       = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+`)
	quotedTool       = regexp.MustCompile("(?i)[`'\"]([A-Za-z][\\w.-]{2,})[`'\"]\\s+(tool|function)|\\b(?:the|use|call|invoke|using|calling)\\s+[`'\"]?([A-Za-z][\\w.-]{2,})[`'\"]?\\s+(?:tool|function)")
)

// Bounds of what a definition needs. Names are bounded by the specification; the others are generous.
const (
	maxName    = 128
	maxEnum    = 240
	maxBlanks  = 60
	maxLines   = 12
	maxEncoded = 120
)

// definitionText inspects one string of a definition.
func (s *scan) definitionText(v *view, shape *shape) {
	t := v.text
	if m := definitionPath.FindIndex(t); m != nil {
		s.find(v, CodeSensitivePath, m[0], m[1])
	}
	if bytes.IndexByte(t, '<') >= 0 || bytes.Contains(t, []byte("[//]")) || bytes.IndexByte(t, ':') >= 0 {
		if m := definitionMarkup.FindIndex(t); m != nil {
			s.find(v, CodeMarkup, m[0], m[1])
		}
	}
	if (shape.newlines > maxLines || shape.blanks > maxBlanks) && len(bytes.TrimSpace(t)) > 0 {
		s.find(v, CodeBlankRun, 0, min(len(t), 80))
	}
	for _, r := range shape.runs {
		run := t[r.from:r.to]
		if r.to-r.from >= maxEncoded && r.encoded && bytes.Count(run, []byte("/")) < len(run)/20+2 && opaque(run) && !bytes.HasPrefix(t, []byte("data:image/")) {
			s.find(v, CodeEncodedBlob, r.from, r.to)
		}
	}
	s.spend(len(t) / 2)
	if m := askedText.FindIndex(t); m != nil && v.depth == 0 {
		s.find(v, CodeAskedParameter, m[0], m[1])
	}
	if len(s.others) > 0 {
		s.otherTools(v)
	}
}

// otherTools finds names of other providers' tools. An ordinary word counts only where it is called a tool.
func (s *scan) otherTools(v *view) {
	for _, m := range identifier.FindAllIndex(v.text, -1) {
		if w := string(v.text[m[0]:m[1]]); len(w) >= 5 && w != s.own && s.others[w] {
			s.find(v, CodeOtherTool, m[0], m[1])
		}
	}
	for _, m := range quotedTool.FindAllSubmatchIndex(v.text, -1) {
		for _, g := range []int{2, 6} {
			if m[g] >= 0 {
				if w := string(v.text[m[g]:m[g+1]]); w != s.own && s.others[w] {
					s.find(v, CodeOtherTool, m[g], m[g+1])
				}
			}
		}
	}
}

// names inspects the places of a definition where a short word is expected: its name, names of members, enumerated values.
func (s *scan) names() {
	for i := range s.doc.texts {
		t := &s.doc.texts[i]
		value := t.value
		words := bytes.Count(value, []byte(" ")) + 1
		switch {
		case t.isName:
			parent := s.doc.nodes[t.parent]
			property := s.doc.nameOf(parent.name) == "properties"
			if len(value) > maxName || words > 5 && property || property && len(value) > 64 && (words > 2 || bytes.Count(value, []byte("_")) > 6) || property && bytes.Count(value, []byte("_")) > 7 {
				s.add(located{code: CodeLongName, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
			if property && askedParameter.Match(value) {
				s.add(located{code: CodeAskedParameter, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
			if property && mixedScript(value) {
				s.add(located{code: CodeMixedScript, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		case t.parent == 0 && s.doc.nameOf(t.name) == "name":
			if len(value) > maxName || words > 4 {
				s.add(located{code: CodeLongName, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
			if mixedScript(value) {
				s.add(located{code: CodeMixedScript, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		case t.parent >= 0 && s.doc.nameOf(s.doc.nodes[t.parent].name) == "enum" || s.doc.nameOf(t.name) == "const":
			if len(value) > maxEnum {
				s.add(located{code: CodeLongName, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		case s.doc.nameOf(t.name) == "$ref" || s.doc.nameOf(t.name) == "$schema" && bytes.HasPrefix(value, []byte("file:")):
			if len(value) > 0 && value[0] != '#' {
				s.add(located{code: CodeExternalRef, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		case t.parent >= 0 && s.doc.nameOf(t.name) == "x-mcp-header":
			if namesSecret(s.doc.nameOf(s.doc.nodes[t.parent].name)) || namesSecret(string(value)) {
				s.add(located{code: CodeMirroredSecret, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		case s.doc.nameOf(t.name) == "title":
			if len(value) > 2*maxName {
				s.add(located{code: CodeLongName, text: int32(i), excerpt: s.excerpt(cut(value, 200))})
			}
		}
	}
}

// mixedScript says that a word is made of Latin letters and of letters that look like them.
func mixedScript(t []byte) bool {
	latin, other := false, false
	for len(t) > 0 {
		r, n := utf8.DecodeRune(t)
		t = t[n:]
		latin = latin || r < 0x250 && unicode.IsLetter(r)
		if _, same := folded(r); !same && r >= 0x250 {
			other = true
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' {
			latin, other = false, false
		}
		if latin && other {
			return true
		}
	}
	return other && !latin
}
