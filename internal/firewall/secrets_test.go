package firewall

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

const (
	hexDigits  = "0123456789abcdef"
	upperAlnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	base32ish  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	wordish    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
)

// madeUp are values of the shape of secrets, by kind. None was ever given out: they are drawn from a seed.
func madeUp() map[string][]string {
	two := func(f func(seed string) string) []string { return []string{f("one"), f("two"), f("three")} }
	kinds := map[string][]string{
		"github token":        two(func(s string) string { return "ghp_" + fill(s, 36) }),
		"github fine-grained": two(func(s string) string { return "github_pat_" + fill(s, 22) + "_" + fill(s+"b", 59) }),
		"gitlab token":        two(func(s string) string { return "glpat-" + fillFrom(s, 20, wordish[:62]) }),
		"aws key id":          two(func(s string) string { return "AKIA" + fillFrom(s, 16, base32ish) }),
		"aws secret":          two(func(s string) string { return `aws_secret_access_key = "` + fill(s, 40) + `"` }),
		"slack bot": two(func(s string) string {
			return "xoxb-" + fillFrom(s, 12, "0123456789") + "-" + fillFrom(s+"b", 12, "0123456789") + "-" + fill(s, 24)
		}),
		"slack webhook": two(func(s string) string {
			return "https://hooks.slack.com/services/T" + fillFrom(s, 8, upperAlnum) + "/B" + fillFrom(s+"b", 8, upperAlnum) + "/" + fill(s, 24)
		}),
		"stripe":         two(func(s string) string { return "sk_live_" + fill(s, 24) }),
		"openai":         two(func(s string) string { return "sk-proj-" + fillFrom(s, 48, wordish[:62]) }),
		"anthropic":      two(func(s string) string { return "sk-ant-api03-" + fillFrom(s, 93, wordish[:62]) + "AA" }),
		"google api key": two(func(s string) string { return "AIza" + fillFrom(s, 35, wordish[:62]) }),
		"npm":            two(func(s string) string { return "npm_" + fill(s, 36) }),
		"pypi":           two(func(s string) string { return "pypi-AgEIcHlwaS5vcmc" + fillFrom(s, 70, wordish[:62]) }),
		"sendgrid": two(func(s string) string {
			return "SG." + fillFrom(s, 22, wordish[:62]) + "." + fillFrom(s+"b", 43, wordish[:62])
		}),
		"twilio":       two(func(s string) string { return "SK" + fillFrom(s, 32, hexDigits) }),
		"telegram bot": two(func(s string) string { return fillFrom(s, 10, "123456789") + ":AA" + fillFrom(s, 33, wordish[:62]) }),
		"digitalocean": two(func(s string) string { return "dop_v1_" + fillFrom(s, 64, hexDigits) }),
		"shopify":      two(func(s string) string { return "shpat_" + fillFrom(s, 32, hexDigits) }),
		"hugging face": two(func(s string) string { return "hf_" + fillFrom(s, 34, wordish[:52]) }),
		"vault":        two(func(s string) string { return "hvs." + fillFrom(s, 95, wordish[:62]) }),
		"grafana":      two(func(s string) string { return "glsa_" + fill(s, 32) + "_" + fillFrom(s, 8, hexDigits) }),
		"age key":      two(func(s string) string { return "AGE-SECRET-KEY-1" + fillFrom(s, 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L") }),
		"alibaba":      two(func(s string) string { return "LTAI" + fill(s, 20) }),
		"tencent":      two(func(s string) string { return "AKID" + fill(s, 32) }),
		"azure storage": two(func(s string) string {
			return "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=" + fill(s, 86) + "=="
		}),
		"jwt":                  two(func(s string) string { return jwt(s) }),
		"private key":          two(func(s string) string { return pem("RSA PRIVATE KEY", s) }),
		"openssh key":          two(func(s string) string { return pem("OPENSSH PRIVATE KEY", s) }),
		"bearer header":        two(func(s string) string { return "Authorization: Bearer " + fill(s, 40) }),
		"basic header":         two(func(s string) string { return "Authorization: Basic " + b64("user:"+fill(s, 14)) }),
		"url password":         two(func(s string) string { return "postgres://svc:" + fill(s, 16) + "@db.internal:5432/app" }),
		"password assignment":  two(func(s string) string { return `password: "` + fill(s, 6) + "!" + fill(s+"b", 5) + `7"` }),
		"client secret":        two(func(s string) string { return `client_secret=` + fill(s, 32) }),
		"chinese password":     two(func(s string) string { return "数据库密码：" + fill(s, 7) + "#" + fill(s+"b", 4) + "9" }),
		"api key assignment":   two(func(s string) string { return `"apiKey": "` + fill(s, 32) + `"` }),
		"datadog key in a var": two(func(s string) string { return `datadog_api_key = "` + fillFrom(s, 40, hexDigits) + `"` }),
		"signed address":       two(func(s string) string { return "https://acct.blob.example/x?sv=2024&sig=" + fill(s, 43) }),
	}
	return kinds
}

func jwt(seed string) string {
	trim := func(s string) string {
		return strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(b64(s)), "=")
	}
	return trim(`{"alg":"HS256","typ":"JWT"}`) + "." + trim(`{"sub":"`+fill(seed, 8)+`","iat":1764500000}`) + "." + fillFrom(seed, 43, wordish)
}

func pem(kind, seed string) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + kind + "-----\n")
	for i := range 6 {
		b.WriteString(fill(fmt.Sprint(seed, i), 64) + "\n")
	}
	return b.String() + "-----END " + kind + "-----"
}

// core is the part of a value that must not come through: its longest run of letters and digits that is not all in lower case.
func core(value string) string {
	best := ""
	for _, f := range strings.FieldsFunc(value, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		if len(f) > len(best) && (strings.ToLower(f) != f || strings.ContainsAny(f, "0123456789")) {
			best = f
		}
	}
	return best
}

type hiddenSecret struct {
	kind, variant string
	document      []byte
	core          string
}

// secretCases are all values in all variants in which they may come.
func secretCases() (cases []hiddenSecret) {
	for kind, values := range madeUp() {
		for i, v := range values {
			add := func(variant string, doc []byte) {
				cases = append(cases, hiddenSecret{kind, variant, doc, core(v)})
			}
			add("plain", textResult("The deployment uses this: "+v+" and nothing else."))
			add("zero width", textResult("Here: "+zeroWidth(v)+" end."))
			add("base64", textResult("config = "+b64("setting: "+v+"\n")))
			add("in JSON", textResult(`{"service":"x","value":`+quoted(v)+`,"n":1}`))
			add("gitleaks:allow", textResult("use "+v+" # gitleaks:allow"))
			if i == 0 {
				add("twice base64", textResult("blob "+b64(b64("setting: "+v))))
				add("hexadecimal", textResult("dump "+hex.EncodeToString([]byte("setting: "+v))))
				add("percent", textResult("q="+percent("setting: "+v)))
				add("escaped JSON in JSON", textResult(quoted(quoted(`{"value":`+quoted(v)+`}`))))
			}
		}
	}
	return cases
}

func zeroWidth(v string) string {
	var b strings.Builder
	for i, c := range v {
		if i > 0 && i%5 == 0 {
			b.WriteString([]string{"\u200b", "\u2060", "\ufeff", "\u00ad"}[i/5%4])
		}
		b.WriteRune(c)
	}
	return b.String()
}

// secrets are found in every variant, in results and in arguments, and no finding quotes them.
func TestLabelledSecrets(t *testing.T) {
	e := engine(t)
	cases := secretCases()
	found, foundOut := 0, 0
	missed := map[string]int{}
	for _, c := range cases {
		v := e.ScreenResult(t.Context(), c.document, Rules{}, nil)
		if hasClass(v.Findings, ClassCredential) && v.Withheld() {
			found++
		} else {
			missed[c.kind+", "+c.variant]++
		}
		if hasClass(e.ScreenArguments(t.Context(), c.document, Rules{}).Findings, ClassCredential) {
			foundOut++
		}
		for _, f := range v.Findings {
			if c.core == "" {
				t.Fatalf("%s has no core", c.kind)
			}
			if strings.Contains(f.Excerpt, c.core) || strings.Contains(f.Place, c.core) {
				t.Errorf("%s, %s: the finding %+v quotes the secret", c.kind, c.variant, f)
			}
		}
		// With a rule that redacts, the rest of the result goes on without the secret.
		r := e.ScreenResult(t.Context(), c.document, Rules{Classes: map[Class]Action{ClassCredential: Redact, ClassLink: Redact, ClassInstruction: Accept}}, nil)
		if r.Kind.Accepted() && hasClass(r.Findings, ClassCredential) && c.core != "" && bytes.Contains(r.Released, []byte(c.core)) {
			t.Errorf("%s, %s: released with the secret: %s", c.kind, c.variant, r.Released)
		}
	}
	rate := 100 * float64(found) / float64(len(cases))
	t.Logf("secrets: %d kinds, %d cases, %d found in results (%.1f %%), %d in arguments; missed %v", len(madeUp()), len(cases), found, rate, foundOut, missed)
	if rate < 97 || 100*float64(foundOut)/float64(len(cases)) < 97 {
		t.Errorf("found %.1f %%, want 97 %%", rate)
	}
}

func hasClass(findings []Finding, c Class) bool {
	for _, f := range findings {
		if f.Class == c {
			return true
		}
	}
	return false
}
