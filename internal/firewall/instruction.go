package firewall

import (
	"regexp"
	"sync"
)

// The codes of instruction-bearing text.
const (
	CodeOverride        Code = "instruction_override"
	CodeConcealment     Code = "instruction_concealment"
	CodeExfiltration    Code = "instruction_exfiltration"
	CodeRouting         Code = "instruction_tool_routing"
	CodeRoleMarker      Code = "instruction_role_marker"
	CodeFakeApproval    Code = "instruction_fake_approval"
	CodeFalseError      Code = "instruction_false_error"
	CodePreference      Code = "instruction_preference"
	CodeAddressed       Code = "instruction_addressed"
	CodeCredentialAsked Code = "instruction_credential_asked"
	CodeMarkupHidden    Code = "instruction_markup_hidden"
)

// scope is where a rule is tried.
type scope uint8

const (
	everywhere scope = iota
	inDefinitions
	inResults
)

// instructionRule is one way to give an order. The expression is tried only around one of the anchors, which are in lower
// case.
type instructionRule struct {
	code    Code
	only    scope
	anchors []string
	pattern func() *regexp.Regexp
}

// How much of a text around an anchor a rule sees.
const (
	instructionBefore = 200
	instructionAfter  = 260
)

// rule makes a rule; the expression is compiled when it is first needed, ignoring case, with . matching line ends.
func rule(code Code, only scope, pattern string, anchors ...string) instructionRule {
	return instructionRule{code, only, anchors, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)` + pattern) })}
}

// instructionRules are those of every language.
var instructionRules = append(append(markupInstructions(), englishInstructions()...), chineseInstructions()...)

// instruction tries r on [from, to) of v.
func (s *scan) instruction(v *view, r *instructionRule, from, to int) {
	s.spend(to - from)
	if m := r.pattern().FindIndex(v.text[from:to]); m != nil {
		s.find(v, r.code, from+m[0], from+m[1])
	}
}

// markupInstructions are marks of conversations and tool calls, in no language.
func markupInstructions() []instructionRule {
	return []instructionRule{
		rule(CodeRoleMarker, everywhere,
			`<\|(im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id|tool|channel)\|>|\[/?INST\]|<</?SYS>>|<start_of_turn>|<end_of_turn>`,
			"<|", "[inst]", "[/inst]", "<<sys>>", "<</sys>>", "_of_turn>"),
		rule(CodeRoleMarker, everywhere, `</?(untrusted|tool_result|function_results?|tool_response|user_query|system[-_ ]?(prompt|message|reminder|instructions?))\b[^>]{0,80}>`,
			"untrusted", "tool_result", "function_result", "tool_response", "user_query", "<system", "</system"),
		rule(CodeRoleMarker, everywhere, `<(function_calls?|tool_calls?|tool_use|invoke\s+name\s*=)\b?`, "<function_call", "<tool_call", "<tool_use", "<invoke"),
		rule(CodeRoleMarker, inResults, `"method"\s*:\s*"tools/call"\s*,\s*"params"`, `tools/call"`),
		rule(CodeAddressed, everywhere, `<\s*(important|critical|urgent|hidden|secret|instructions?|admin|mandatory)\s*>`,
			"<important", "<critical", "<urgent", "<hidden", "<secret", "<instruction", "<admin", "<mandatory", "< important"),
		rule(CodeMarkupHidden, everywhere, `<!--[^>]{0,200}\b(you|must|always|ignore|do not|don't|tool|assistant|agent|model|ai|user|send|call)\b[^>]{0,120}\b(you|must|ignore|tell|call|send|include|read|user|tool|instructions?|prompt|file|invoke|use)\b`, "<!--"),
		rule(CodeMarkupHidden, everywhere, `(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](px|pt|em)?\b|opacity\s*:\s*0\b|color\s*:\s*(white|#fff(fff)?|transparent)\b)[^<]{0,80}>[^<]{0,160}\b(ignore|must|instructions?|assistant|agent|tool|send|do not|system|ai|prompt)\b`,
			"display", "visibility", "font-size", "opacity", "color:white", "color:#fff", "color: white", "color: #fff", "color:transparent", "color: transparent"),
		rule(CodeMarkupHidden, everywhere, `\[(//|comment|_+)\]\s*:\s*(#|<>)\s*[("'][^)"'\n]{12,}`, "[//]", "[comment]", "[_]"),
	}
}
