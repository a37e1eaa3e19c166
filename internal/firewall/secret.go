package firewall

import (
	"bytes"
	"math"
	"regexp"
	"sync"
)

// The codes of credentials.
const (
	CodePrivateKey     Code = "private_key"
	CodeProviderToken  Code = "provider_token"
	CodeJWT            Code = "jwt"
	CodeAuthHeader     Code = "authorization_header"
	CodeURLPassword    Code = "url_password"
	CodeAssignedSecret Code = "assigned_secret"
	CodeKnownRule      Code = "known_secret"
)

// tokenRule is a form of token that begins with a prefix that nothing else begins with.
type tokenRule struct {
	prefixes []string // as written
	pattern  func() *regexp.Regexp
}

func token(pattern string, prefixes ...string) tokenRule {
	return tokenRule{prefixes: prefixes, pattern: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)`) })}
}

// tokenRules are forms of token that are common, so that they are found without any context. What is rarer, the rules of
// gitleaks find.
var tokenRules = []tokenRule{
	token(`gh[pousr]_[0-9A-Za-z]{30,255}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	token(`github_pat_[0-9A-Za-z_]{40,255}`, "github_pat_"),
	token(`gl(pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[0-9A-Za-z_=.-]{18,}`, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-"),
	token(`(AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b`, "AKIA", "ASIA", "ABIA", "ACCA"),
	token(`xox[abeoprs](-\d)?-[0-9A-Za-z-]{12,}`, "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxe.xox"),
	token(`xapp-\d-[A-Z0-9]+-\d+-[0-9a-z]{16,}`, "xapp-"),
	token(`hooks\.slack\.com/(services|workflows|triggers)/[A-Za-z0-9+/]{30,}`, "hooks.slack.com/"),
	token(`discord(app)?\.com/api/webhooks/\d{15,}/[\w-]{40,}`, "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
	token(`[sr]k_(live|test|prod)_[0-9A-Za-z]{16,}`, "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
	token(`whsec_[0-9A-Za-z+/=]{24,}`, "whsec_"),
	token(`sk-(proj|svcacct|admin|or-v1|None)-[0-9A-Za-z_-]{20,}`, "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-None-"),
	token(`sk-ant-[a-z0-9]{3,12}-[0-9A-Za-z_-]{24,}`, "sk-ant-"),
	token(`sk-[0-9A-Za-z]{32,64}\b`, "sk-"),
	token(`AIza[0-9A-Za-z_-]{35}`, "AIza"),
	token(`GOCSPX-[0-9A-Za-z_-]{24,}`, "GOCSPX-"),
	token(`ya29\.[0-9A-Za-z_-]{30,}`, "ya29."),
	token(`npm_[0-9A-Za-z]{36}`, "npm_"),
	token(`pypi-[0-9A-Za-z_-]{50,}`, "pypi-AgE"),
	token(`rubygems_[0-9a-f]{48}`, "rubygems_"),
	token(`dckr_(pat|oat)_[0-9A-Za-z_-]{24,}`, "dckr_pat_", "dckr_oat_"),
	token(`SG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{32,64}`, "SG."),
	token(`key-[0-9a-f]{32}\b`, "key-"),
	token(`(SK|AC)[0-9a-f]{32}\b`, "SK", "AC"),
	token(`do[opr]_v1_[0-9a-f]{64}`, "dop_v1_", "doo_v1_", "dor_v1_"),
	token(`shp(at|ca|pa|ss)_[0-9A-Fa-f]{32}`, "shpat_", "shpca_", "shppa_", "shpss_"),
	token(`sq0(csp|atp|idp)-[0-9A-Za-z_-]{22,}`, "sq0csp-", "sq0atp-"),
	token(`hf_[A-Za-z0-9]{30,}`, "hf_"),
	token(`dapi[0-9a-f]{32}(-\d)?\b`, "dapi"),
	token(`dp\.(pt|st|ct|sa|scim|audit)\.([a-z0-9_-]+\.)?[0-9A-Za-z]{40,}`, "dp.pt.", "dp.st.", "dp.ct.", "dp.sa."),
	token(`lin_(api|oauth)_[0-9A-Za-z]{32,}`, "lin_api_", "lin_oauth_"),
	token(`(ntn_[0-9A-Za-z]{40,}|secret_[0-9A-Za-z]{43}\b)`, "ntn_", "secret_"),
	token(`PMAK-[0-9a-f]{24}-[0-9a-f]{34}`, "PMAK-"),
	token(`hv[sbr]\.[0-9A-Za-z_-]{24,}`, "hvs.", "hvb.", "hvr."),
	token(`gl(sa_[0-9A-Za-z]{32}_[0-9a-f]{8}|c_[0-9A-Za-z+/=]{32,})`, "glsa_", "glc_"),
	token(`AGE-SECRET-KEY-1[0-9A-Za-z]{50,}`, "AGE-SECRET-KEY-1"),
	token(`PRIVATE-AGE-KEY-[0-9A-Za-z]{40,}`, "PRIVATE-AGE-KEY-"),
	token(`LTAI[0-9A-Za-z]{16,24}\b`, "LTAI"),
	token(`AKID[0-9A-Za-z]{32}\b`, "AKID"),
	token(`EAA[A-Za-z0-9]{60,}`, "EAA"),
	token(`sntry[su]_[0-9A-Za-z+/=_-]{40,}`, "sntrys_", "sntryu_"),
	token(`pscale_(tkn|pw|oauth)_[0-9A-Za-z_.=-]{30,}`, "pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
	token(`pul-[0-9a-f]{40}`, "pul-"),
	token(`xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}`, "xkeysib-"),
	token(`phc_[0-9A-Za-z]{40,}|phx_[0-9A-Za-z]{40,}`, "phc_", "phx_"),
	token(`gsk_[0-9A-Za-z]{48,}`, "gsk_"),
	token(`r8_[0-9A-Za-z]{36,}`, "r8_"),
	token(`pplx-[0-9A-Za-z]{40,}`, "pplx-"),
	token(`xai-[0-9A-Za-z]{60,}`, "xai-"),
	token(`sb(p|_secret)_[0-9A-Za-z_]{30,}`, "sbp_", "sb_secret_"),
	token(`tskey-(auth|api|client)-[0-9A-Za-z]+-[0-9A-Za-z]{20,}`, "tskey-"),
	token(`ops_eyJ[0-9A-Za-z+/=_-]{100,}`, "ops_eyJ"),
	token(`ATATT3[0-9A-Za-z_=-]{60,}`, "ATATT3"),
	token(`EZ[AT]K[0-9A-Za-z]{50,}`, "EZAK", "EZTK"),
	token(`AccountKey=[0-9A-Za-z+/]{80,}={0,2}`, "AccountKey="),
	token(`figd_[0-9A-Za-z_-]{36,}`, "figd_"),
	token(`NRAK-[0-9A-Z]{27}`, "NRAK-"),
	token(`A3-[0-9A-Z]{6}-[0-9A-Z]{6}-[0-9A-Z]{5}-[0-9A-Z]{5}-[0-9A-Z]{5}-[0-9A-Z]{5}`, "A3-"),
}

// token tries r where one of its prefixes begins.
func (s *scan) token(v *view, r *tokenRule, start int) {
	if start > 0 && wordByte(v.text[start-1]) {
		return
	}
	end := min(len(v.text), start+400)
	s.spend(32)
	m := r.pattern().FindIndex(v.text[start:end])
	if m == nil || dull(v.text[start:start+m[1]]) {
		return
	}
	s.find(v, CodeProviderToken, start, start+m[1])
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// dull says that t is an example and no secret: too few different characters, or words that examples are made of.
func dull(t []byte) bool {
	var seen [256]bool
	n := 0
	for _, c := range t {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	if n < 8 {
		return true
	}
	l := []byte(lower(string(t)))
	for _, w := range []string{"xxxx", "example", "placeholder", "your_", "your-", "redacted", "changeme", "...", "****", "____", "0000000000", "1234567890abcdef1234567890abcdef", "abcdefghijklmnop", "<", "${", "{{"} {
		if bytes.Contains(l, []byte(w)) {
			return true
		}
	}
	return false
}

// secretRule is a form of secret that an anchor begins or stands in.
type secretRule struct {
	code    Code
	anchors []string
	before  int // how much of the text before the anchor belongs to it
	after   int
	pattern func() *regexp.Regexp // group 1 is the secret, if there is one
	check   func(secret []byte) bool
}

func secret(code Code, before, after int, check func([]byte) bool, pattern string, anchors ...string) secretRule {
	return secretRule{code, anchors, before, after, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) }), check}
}

var otherSecrets = []secretRule{
	secret(CodeJWT, 0, 4096, nil, `^(eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{16,})`, "eyj"),
	secret(CodeAuthHeader, 0, 600, lively, `(?i)^authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest|bot|apikey|key)\s+([0-9A-Za-z._~+/=-]{12,})`, "authorization"),
	secret(CodeAuthHeader, 0, 600, lively, `(?i)^bearer\s+([0-9A-Za-z._~+/=-]{20,})`, "bearer"),
	secret(CodeAuthHeader, 0, 300, lively, `(?i)^(?:x-api-key|x-auth-token|x-access-token|api-key|apikey|private-token|x-vault-token)["']?\s*:\s*["']?([0-9A-Za-z._~+/=-]{16,})`, "x-api-key", "x-auth-token", "x-access-token", "private-token", "x-vault-token"),
	secret(CodeURLPassword, 0, 300, realPassword, `^://[^\s/:@'"<>{}]{0,100}:([^\s/@'"<>{}$]{3,100})@[0-9A-Za-z\[]`, "://"),
	secret(CodeProviderToken, 12, 60, lively, `\b(\d{8,10}:AA[0-9A-Za-z_-]{32,34})\b`, ":aa"),
	secret(CodeProviderToken, 30, 80, lively, `\b([MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6,7}\.[0-9A-Za-z_-]{27,40})`, "discord"),
	secret(CodeProviderToken, 0, 160, lively, `(?i)^[?&](?:sig|signature|x-amz-signature|x-goog-signature|access_token|id_token|refresh_token|api_?key|auth_?token|client_secret|password|pwd|secret)=([0-9A-Za-z%+/_.~-]{16,})`,
		"?sig=", "&sig=", "?signature=", "&signature=", "-signature=", "?access_token=", "&access_token=", "?id_token=", "&id_token=", "?refresh_token=", "&refresh_token=", "?api_key=", "&api_key=", "?apikey=", "&apikey=", "?auth_token=", "&auth_token=", "?client_secret=", "&client_secret=", "?password=", "&password=", "?pwd=", "&pwd=", "?secret=", "&secret="),
}

var (
	keyBegin = []byte("-----begin")
	keyEnd   = []byte("-----END")
	keyMark  = regexp.MustCompile(`(?i)^-----BEGIN (?:[A-Z0-9 ]{0,30})PRIVATE KEY(?: BLOCK)?-----`)
)

func init() {
	otherSecrets = append(otherSecrets, secretRule{code: CodePrivateKey, anchors: []string{string(keyBegin), "putty-user-key-file"}})
}

// otherSecret tries r around one of its anchors, which stands at [start, end).
func (s *scan) otherSecret(v *view, r *secretRule, start, end int) {
	if r.code == CodePrivateKey {
		s.privateKey(v, start)
		return
	}
	if r.code == CodeURLPassword && !bytes.ContainsRune(v.text[end:min(len(v.text), end+200)], '@') {
		return
	}
	if r.code == CodeJWT && (v.text[start] != 'e' || v.text[end-1] != 'J' || start > 0 && wordByte(v.text[start-1])) {
		return
	}
	from, to := max(0, start-r.before), min(len(v.text), end+r.after)
	s.spend((to - from) / 4)
	m := r.pattern().FindSubmatchIndex(v.text[from:to])
	if m == nil {
		return
	}
	a, b := from+m[0], from+m[1]
	if len(m) >= 4 && m[2] >= 0 {
		a, b = from+m[2], from+m[3]
	}
	if r.check != nil && !r.check(v.text[a:b]) {
		return
	}
	s.find(v, r.code, a, b)
}

// privateKey finds a key from its first line to its last, or to where the text is cut off.
func (s *scan) privateKey(v *view, start int) {
	t := v.text[start:]
	if m := keyMark.FindIndex(t[:min(len(t), 80)]); m != nil {
		rest := t[m[1]:]
		to, closed := min(len(rest), 16<<10), false
		if i := bytes.Index(rest[:to], keyEnd); i >= 0 {
			to, closed = i+len(keyEnd), true
			if j := bytes.Index(rest[to:min(len(rest), to+60)], []byte("-----")); j >= 0 {
				to += j + 5
			}
		}
		if !keyBody(rest[:to]) {
			return // a mention, not a key
		}
		if !closed { // as far as it looks like one
			to = 0
			for to < len(rest) && to < 16<<10 && (byteClass[rest[to]]&cBase64 != 0 || blank(rest[to]) || rest[to] == '\\' || rest[to] == ':' || rest[to] == ',') {
				to++
			}
		}
		s.find(v, CodePrivateKey, start, start+m[1]+to)
		return
	}
	if lower(string(t[:min(len(t), 19)])) == "putty-user-key-file" && bytes.Contains(t[:min(len(t), 8<<10)], []byte("Private-Lines:")) {
		s.find(v, CodePrivateKey, start, start+min(len(t), 8<<10))
	}
}

// keyBody says that t goes on as a key does after its first line: with encoded bytes, or with a header and then those.
func keyBody(t []byte) bool {
	t = bytes.TrimPrefix(bytes.TrimLeft(t[:min(len(t), 400)], " \t\r\n\\"), []byte("n"))
	for _, header := range []string{"Proc-Type:", "Version:", "Comment:", "DEK-Info:"} {
		if bytes.HasPrefix(t, []byte(header)) {
			return true
		}
	}
	n := 0
	for _, c := range t {
		if byteClass[c]&cBase64 != 0 {
			if n++; n >= 24 {
				return true
			}
		} else if !blank(c) && c != '\\' {
			return false
		}
	}
	return false
}

// lively says that t is as mixed as secrets are, and no example.
func lively(t []byte) bool {
	return !dull(t) && entropy(t) > 3 && bytes.ContainsAny(t, "0123456789")
}

// realPassword says that t is not a word that stands for a password.
func realPassword(t []byte) bool {
	switch l := lower(string(t)); {
	case bytes.ContainsAny(t, "*<>[]"), bytes.HasPrefix(t, []byte("$")), bytes.HasPrefix(t, []byte("%")):
		return false
	default:
		for _, w := range []string{"password", "pass", "passwd", "pwd", "secret", "pw", "xxx", "xxxx", "user", "token", "your", "example", "changeme", "redacted", "postgres", "root", "admin", "mysecretpassword", "guest", "test"} {
			if l == w || l == "your_"+w || l == "your-"+w || l == "my"+w {
				return false
			}
		}
	}
	return true
}

// entropy is Shannon's, in bits a byte.
func entropy(t []byte) float64 {
	var count [256]int
	for _, c := range t {
		count[c]++
	}
	e, n := 0.0, float64(len(t))
	for _, c := range count {
		if c > 0 {
			p := float64(c) / n
			e -= p * math.Log2(p)
		}
	}
	return e
}
