package firewall

import (
	"bytes"
	"regexp"
	"strings"
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

// instructionRule is one way to give an order. Its expression is costly, so it is tried only where one word of every group
// stands near the others.
type instructionRule struct {
	code    Code
	only    scope
	groups  [][]string
	ordered bool // the words stand in the order of their groups
	pattern func() *regexp.Regexp
}

// How far the words of a rule may stand apart, and how much around them its expression sees.
const (
	reach       = 320 // from first to last
	step        = 180 // from one to the next, where they are ordered
	beforeWords = 120
	afterWords  = 120
	maxGroups   = 4
)

// rule makes a rule; the expression is compiled when it is first needed, ignoring case, with . matching line ends. A group is
// a list of words divided by bars.
func rule(code Code, only scope, pattern string, groups ...string) instructionRule {
	r := instructionRule{code: code, only: only, pattern: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)` + pattern) })}
	for _, g := range groups {
		list := strings.Split(strings.ReplaceAll(g, "<|", "<\x00"), "|")
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], "<\x00", "<|")
		}
		r.groups = append(r.groups, list)
	}
	return r
}

// instructionRules are those of every language.
var instructionRules = append(append(markupInstructions(), englishInstructions()...), chineseInstructions()...)

// ordered is rule for words that stand in the order of their groups.
func ordered(code Code, only scope, pattern string, groups ...string) instructionRule {
	r := rule(code, only, pattern, groups...)
	r.ordered = true
	return r
}

// instructionWord notes that a word of a group of rule stands at [start, end), and asks for the rule to be tried if every
// group has one near.
func (s *scan) instructionWord(v *view, rule int32, group uint8, start, end int) {
	r := &instructionRules[rule]
	if s.outgoing || r.only == inDefinitions && !s.defining || r.only == inResults && s.defining {
		return
	}
	last := &s.last[rule]
	if !last.live {
		*last = lastWords{live: true}
		for i := range last.at {
			last.at[i] = -1
		}
		s.seen = append(s.seen, rule)
	}
	if r.ordered {
		if group > 0 {
			at := int(last.at[group-1])
			if at < 0 || start < at || start-at > step || bytes.Count(v.text[at:start], lineEnd) > 1 {
				return
			}
			last.from[group] = last.from[group-1]
		} else {
			last.from[0] = int32(start)
		}
		last.at[group] = int32(start)
		if int(group) == len(r.groups)-1 {
			s.extend(rule, int(last.from[group])-beforeWords, end+afterWords, v)
		}
		return
	}
	last.at[group] = int32(start)
	from := start
	for g := range r.groups {
		at := int(last.at[g])
		if at < 0 || at < start-reach {
			return
		}
		from = min(from, at)
	}
	s.extend(rule, from-beforeWords, end+afterWords, v)
}

var lineEnd = []byte{'\n'}

// lastWords is where the last word of each group of a rule stands.
type lastWords struct {
	live bool
	at   [maxGroups]int32
	from [maxGroups]int32 // where the row that it ends begins
}

// instruction tries r on [from, to) of v.
func (s *scan) instruction(v *view, r *instructionRule, from, to int) {
	s.spend(to - from)
	t := v.text[from:to]
	for _, m := range r.pattern().FindAllIndex(t, 8) {
		if negatable[r.code] && negated.Match(t[max(0, m[0]-40):m[0]]) {
			continue
		}
		s.find(v, r.code, from+m[0], from+m[1])
		return
	}
}

// negatable are the codes whose orders are no orders if they are forbidden.
var negatable = map[Code]bool{CodeExfiltration: true, CodeRouting: true, CodeCredentialAsked: true}

// negated ends with a word that turns an order round.
var negated = regexp.MustCompile(`(?i)(\b(do\s+not|don'?t|never|avoid|must\s+not|should\s+not|shouldn'?t|mustn'?t|cannot|not\s+to|without|please\s+do\s+not)[\s*_]+(\w+\s+){0,2}|(不要|请勿|切勿|禁止|不得|勿|不应|不能|避免).{0,12})$`)

// markupInstructions are marks of conversations and tool calls, in no language.
func markupInstructions() []instructionRule {
	return []instructionRule{
		rule(CodeRoleMarker, everywhere,
			`<\|(im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id|tool|channel)\|>|\[/?INST\]|<</?SYS>>|<start_of_turn>|<end_of_turn>`,
			"<|im_|<|system|<|user|<|assistant|<|endoftext|<|start_header|<|eot_id|<|tool|<|channel|[inst]|[/inst]|<<sys>>|<</sys>>|<start_of_turn>|<end_of_turn>"),
		rule(CodeRoleMarker, everywhere, `</?(untrusted|tool_result|function_results?|tool_response|user_query|system[-_ ]?(prompt|message|reminder|instructions?))\b[^>]{0,80}>`,
			"<untrusted|</untrusted|<tool_res|</tool_res|<function_res|</function_res|<user_query|</user_query|<system|</system"),
		rule(CodeRoleMarker, everywhere, `<(function_calls?|tool_calls?|tool_use|invoke\s+name\s*=)`, "<function_call|<tool_call|<tool_use|<invoke"),
		rule(CodeRoleMarker, inResults, `"(tool_calls?|function_call|tool_use)"\s*:\s*[\[{]\s*\{?\s*"(name|tool|function|id|type|arguments)"`, `"tool_call|"function_call"|"tool_use"`),
		rule(CodeAddressed, everywhere, `<\s*(important|critical|urgent|hidden|secret|instructions?|admin|mandatory)\s*>`,
			"<important>|<critical>|<urgent>|<hidden>|<secret>|<instruction|<admin>|<mandatory>|< important"),
		rule(CodeFakeApproval, inResults, `\b(approved|granted|confirmed|allowed|accepted|authori[sz]ed|批准|同意)\b[^\n]{0,80}\bap-[0-9a-z]{26}\b|\bap-[0-9a-z]{26}\b[^\n]{0,80}(\b(approved|granted|confirmed|allowed|accepted|authori[sz]ed)\b|批准|同意)`,
			"ap-", "approved|granted|confirmed|allowed|accepted|authorized|authorised|批准|同意"), // a request of ours
		ordered(CodeMarkupHidden, everywhere, `<!--[^>]{0,200}\b(you|must|always|ignore|do not|don't|tool|assistant|agent|model|ai|user|send|call)\b[^>]{0,120}\b(you|must|ignore|tell|call|send|include|read|user|tool|instructions?|prompt|file|invoke|use)\b`,
			"<!--", "you|must|always|ignore|do not|don't|tool|assistant|agent|model|ai|user|send|call"),
		ordered(CodeMarkupHidden, everywhere, `<!--[^>]{0,200}(你|请|必须|忽略|工具|用户|调用|发送)[^>]{0,120}(你|必须|忽略|告诉|调用|发送|读取|用户|工具|指令|提示|文件)`,
			"<!--", "你|请|必须|忽略|工具|用户|调用|发送"),
		ordered(CodeMarkupHidden, everywhere, `(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](px|pt|em)?\b|opacity\s*:\s*0\b|color\s*:\s*(white|#fff(fff)?|transparent)\b)[^<]{0,80}>[^<]{0,160}(\b(ignore|must|instructions?|assistant|agent|tool|send|do not|system|ai|prompt)\b|忽略|必须|指令|助手|工具|发送|系统)`,
			"display|visibility|font-size|opacity|color:|color :", "none|hidden|0|1px|white|#fff|transparent", "ignore|must|instruction|assistant|agent|tool|send|do not|system|ai|prompt|忽略|必须|指令|助手|工具|发送|系统"),
		ordered(CodeMarkupHidden, everywhere, `\[(//|comment|_+)\]\s*:\s*(#|<>)\s*[("'][^)"'\n]{12,}`, "[//]|[comment]|[_]"),
	}
}
