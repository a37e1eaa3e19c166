package firewall

import (
	"bytes"
	"regexp"
)

var (
	askedName  = regexp.MustCompile(`(?i)(^|[_\s-])(pass(word|wd|phrase|code)|pwd|api_?key|(access|auth|bearer|refresh|personal_access|github|gitlab|slack|bot|id)?_?token|secret|private_?key|seed_?phrase|recovery_?phrase|mnemonic|cvv|cvc|card_?number|credit_?card|ssn|otp|totp|mfa_?code|verification_?code|pin(_?code)?|credentials?)($|[_\s-])|密码|口令|令牌|密钥|私钥|助记词|验证码|卡号`)
	askedTitle = regexp.MustCompile(`(?i)\b(password|passphrase|passcode|api[\s-]?key|access\s+key|(access|auth|bearer|github|gitlab|slack|personal\s+access|refresh|session)\s+token|token|secret(\s+key)?|private\s+key|seed\s+phrase|recovery\s+(phrase|code)|mnemonic|cvv|cvc|(credit\s+)?card\s+number|social\s+security|ssn|one-?time\s+(code|password)|otp|2fa|mfa|pin\s+code|credentials?)\b|密码|口令|令牌|密钥|私钥|助记词|验证码|银行卡号`)
)

// askedFields finds forms in a result that ask for secrets (A-26, S-088): a property of a requested schema whose name, title,
// description or format says so.
func (s *scan) askedFields() {
	d := s.doc
	in := make([]bool, len(d.nodes)) // below a requestedSchema
	any := false
	for i := range d.nodes {
		n := &d.nodes[i]
		in[i] = n.parent >= 0 && in[n.parent] || n.name >= 0 && d.nameOf(n.name) == "requestedSchema"
		any = any || in[i]
	}
	if !any {
		return
	}
	for i := range d.texts {
		t := &d.texts[i]
		if t.parent < 0 || !in[t.parent] {
			continue
		}
		hit := false
		if t.isName {
			hit = d.nameOf(d.nodes[t.parent].name) == "properties" && askedName.Match(snake(t.value))
		} else {
			switch d.nameOf(t.name) {
			case "title", "description":
				hit = askedTitle.Match(t.value)
			case "format":
				hit = string(t.value) == "password"
			}
		}
		if hit {
			s.add(located{code: CodeCredentialAsked, text: int32(i), excerpt: s.excerpt(cut(t.value, 120))})
		}
	}
}

// snake writes camelCase names with underscores.
func snake(t []byte) []byte {
	var b bytes.Buffer
	for i, c := range t {
		if c >= 'A' && c <= 'Z' && i > 0 && t[i-1] >= 'a' && t[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteByte(c)
	}
	return b.Bytes()
}
