package firewall

import (
	"bytes"
	"slices"
	"strings"
)

// assignedNames are words in names of what is secret, in lower case. A value assigned to such a name is a secret if it looks
// like one.
var assignedNames = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key", "api key", "access_key", "accesskey", "access-key",
	"private_key", "privatekey", "private-key", "secret_key", "secretkey", "signing_key", "encryption_key", "master_key", "auth_key", "authkey", "account_key", "accountkey",
	"credential", "client_secret", "webhook_key", "密码", "口令", "密钥", "令牌", "凭证",
}

// weakNames are in names that hold no secret although one of assignedNames is.
var weakNames = []string{
	"next", "page", "continuation", "cursor", "sync", "max", "min", "count", "limit", "total", "usage", "prompt_token", "input_token", "output_token", "type", "hint",
	"length", "policy", "name", "_id", "url", "uri", "path", "file", "public", "expires", "expiry", "created", "updated", "format", "field", "version", "label", "tokenizer", "tokens",
	"ref", "arn", "description", "reset", "forgot", "location", "manager", "regex", "pattern", "required", "enabled",
}

// namesSecret says whether a name is one of something secret.
func namesSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(assignedNames, func(w string) bool { return strings.Contains(name, w) }) &&
		!slices.ContainsFunc(weakNames, func(w string) bool { return strings.Contains(name, w) })
}

// assignment looks at what follows one of assignedNames, which stands at [start, end): in name=value, "name": "value",
// name is value.
func (s *scan) assignment(v *view, start, end int) {
	t := v.text
	i := end
	for n := 0; i < len(t) && n < 24 && (wordByte(t[i]) || t[i] == '-'); n++ { // the rest of the name
		i++
	}
	nameFrom := start
	for n := 0; nameFrom > 0 && n < 40 && (wordByte(t[nameFrom-1]) || t[nameFrom-1] == '-'); n++ {
		nameFrom--
	}
	name := t[nameFrom:i]
	sep := i
	for sep < len(t) && sep-i < 4 && (t[sep] == '"' || t[sep] == '\'' || t[sep] == ' ' || t[sep] == '`' || t[sep] == '*' || t[sep] == ']') {
		sep++
	}
	j := sep
	switch rest := t[sep:]; {
	case bytes.HasPrefix(rest, []byte(":=")), bytes.HasPrefix(rest, []byte("=>")):
		j += 2
	case bytes.HasPrefix(rest, []byte("==")), bytes.HasPrefix(rest, []byte("::")):
		return
	case len(rest) > 0 && (rest[0] == ':' || rest[0] == '='):
		j++
	case bytes.HasPrefix(rest, []byte("：")):
		j += len("：")
	case bytes.HasPrefix(rest, []byte("是")), bytes.HasPrefix(rest, []byte("为")):
		j += len("是")
	case sep > i && bytes.HasPrefix(rest, []byte("is ")):
		j += 3
	default:
		return
	}
	for n := 0; j < len(t) && n < 6 && (blank(t[j]) && t[j] != '\n' || t[j] == '*' || t[j] == '>'); n++ {
		j++
	}
	quoted := byte(0)
	if j < len(t) && (t[j] == '"' || t[j] == '\'' || t[j] == '`') {
		quoted = t[j]
		j++
	}
	k := j
	for ; k < len(t) && k-j < 512; k++ {
		c := t[k]
		if quoted != 0 && c == quoted || quoted == 0 && (blank(c) || c == ',' || c == ';' || c == '"' || c == '\'' || c == '`' || c == '<' || c == ')' || c == '}' || c == '&') || c == '\n' || c == '\\' || c >= 0x80 {
			break
		}
	}
	for quoted == 0 && k > j && (t[k-1] == '.' || t[k-1] == ':' || t[k-1] == '*') {
		k--
	}
	if secretValue(name, t[j:k], quoted != 0) {
		s.find(v, CodeAssignedSecret, j, k)
	}
}

// namedSecret takes v as the value of the member that it is the value of, as in {"password": "..."}.
func (s *scan) namedSecret(v *view, shape *shape) {
	if v.name == nil || v.depth > 0 || len(v.text) < 6 || len(v.text) > 512 || bytes.ContainsAny(v.text, " \n\t") {
		return
	}
	name := []byte(lower(string(v.name)))
	for _, w := range assignedNames {
		if !bytes.Contains(name, []byte(w)) {
			continue
		}
		if secretValue(name, v.text, true) {
			s.find(v, CodeAssignedSecret, 0, len(v.text))
		}
		return
	}
	if len(shape.runs) == 0 || len(name) > 64 {
		return
	}
	// Rules that need a name before the value, as they would read it in a file.
	joined := append(append(append([]byte(nil), name...), ` = "`...), v.text...)
	joined = append(joined, '"')
	at := len(name) + 4
	inner := view{text: joined, depth: maxDecoding}
	ix := words()
	ix.scan(joined[:at-4], func(word, end int) bool {
		for _, sub := range ix.subscribers[word] {
			if sub.kind == forGitleaks {
				s.gitleaks(&inner, &gitleaksRules()[sub.rule], 0, len(joined))
			}
		}
		return true
	})
	for _, f := range inner.found {
		if f.start >= at && f.end <= at+len(v.text) {
			s.find(v, f.code, f.start-at, f.end-at)
		}
	}
}

// secretValue says that value, which name is given to, looks like a secret.
func secretValue(name, value []byte, quoted bool) bool {
	n := []byte(lower(string(name)))
	for _, w := range weakNames {
		if bytes.Contains(n, []byte(w)) {
			return false
		}
	}
	password := bytes.Contains(n, []byte("pass")) || bytes.Contains(n, []byte("pwd")) || bytes.Contains(n, []byte("密码")) || bytes.Contains(n, []byte("口令"))
	if len(value) < 8 || len(value) < 16 && !password || dull(value) && len(value) >= 12 {
		return false
	}
	if bytes.ContainsAny(value, " \t()[]{}<>|") || value[0] == '$' || value[0] == '%' || value[0] == '/' || value[0] == '.' || value[0] == '#' {
		return false
	}
	var digits, upper, lowers, signs, hexes int
	for _, c := range value {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			lowers++
		case c >= 'A' && c <= 'Z':
			upper++
		default:
			signs++
		}
		if byteClass[c]&cHex != 0 {
			hexes++
		}
	}
	if digits == 0 || lowers+upper == 0 {
		return false
	}
	if bytes.Contains(value, []byte("://")) || bytes.Count(value, []byte("/")) > 2 && len(value) < 60 || bytes.HasPrefix(bytes.ToLower(value), []byte("process.env")) || bytes.HasPrefix(bytes.ToLower(value), []byte("os.")) {
		return false
	}
	if uuid(value) && !bytes.Contains(n, []byte("secret")) && !bytes.Contains(n, []byte("key")) {
		return false
	}
	if password && len(value) < 16 {
		if !quoted && signs == 0 && (upper == 0 || lowers == 0) {
			return false
		}
		return digits >= 1 && (upper > 0 || signs > 0 || digits >= 2) && entropy(value) >= 2.5
	}
	return entropy(value) >= 3 && (digits >= 2 || len(value) >= 32)
}

// uuid says that t has the shape of one.
func uuid(t []byte) bool {
	if len(t) != 36 {
		return false
	}
	for i, c := range t {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && byteClass[c]&cHex == 0 {
			return false
		}
	}
	return true
}
