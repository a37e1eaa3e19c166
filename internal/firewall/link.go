package firewall

import (
	"bytes"
	"regexp"
	"sync"
)

// The codes of links.
const (
	CodeLinkExfiltration  Code = "link_exfiltration"
	CodeLinkRemoteImage   Code = "link_remote_image"
	CodeLinkFile          Code = "link_file"
	CodeLinkSensitiveFile Code = "link_sensitive_file"
	CodeLinkMetadata      Code = "link_metadata_address"
	CodeLinkScript        Code = "link_script"
)

// linkRule is a form in which an address stands in text. Group 1 is the address.
type linkRule struct {
	form    linkForm
	anchors []string
	pattern func() *regexp.Regexp
}

type linkForm uint8

const (
	linkImage  linkForm = iota // fetched by itself
	linkPlain                  // fetched if someone follows it
	linkScript                 // runs
)

func link(form linkForm, pattern string, anchors ...string) linkRule {
	return linkRule{form, anchors, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)^(?:` + pattern + `)`) })}
}

var linkRules = []linkRule{
	link(linkImage, `!\[[^\]\n]{0,300}\]\(\s*<?([^\s)>]{4,})`, "!["),
	link(linkImage, `<(?:img|image|iframe|video|audio|source|embed|object|link|input|script|body|table|td)\b[^>]{0,300}?(?:src|srcset|href|data|background|poster)\s*=\s*["']?([^\s"'>]{4,})`, "<img", "<image", "<iframe", "<video", "<audio", "<source", "<embed", "<object", "<link", "<input", "<script"),
	link(linkImage, `url\(\s*["']?((?:https?:)?//[^\s"')]{4,})`, "url("),
	link(linkImage, `@import\s+["']([^\s"']{4,})`, "@import"),
	link(linkImage, `\]:\s*<?(https?://[^\s>]{4,})`, "]:"),
	link(linkPlain, `(https?://[^\s"'<>)\]}]{4,})`, "http://", "https://"),
	link(linkScript, `((?:javascript|vbscript):[^\s"'<>]{2,}|data:text/html[^\s"'<>]{4,})`, "javascript:", "vbscript:", "data:text/html"),
}

// link looks at the address that begins at an anchor of r.
func (s *scan) link(v *view, r *linkRule, start, end int) {
	t := v.text[start:min(len(v.text), start+4096)]
	s.spend(16)
	var m []int
	if r.form == linkPlain { // the most common form, without an expression
		n := bytes.IndexAny(t, " \t\r\n\"'<>)]}")
		if n < 0 {
			n = len(t)
		}
		m = []int{0, n, 0, n}
	} else if m = r.pattern().FindSubmatchIndex(t); m == nil {
		return
	}
	a, b := start+m[2], start+m[3]
	address := v.text[a:b]
	code := Code("")
	switch r.form {
	case linkImage:
		switch {
		case metadataAddress(address):
			code = CodeLinkExfiltration
		case !bytes.Contains(address, []byte("//")):
		case payload(address, 24) || templated(address):
			code = CodeLinkExfiltration
		case t[0] == '!' || bytes.HasPrefix(bytes.ToLower(t), []byte("<im")):
			code = CodeLinkRemoteImage
		}
		if code != "" {
			a, b = start, start+m[1]
			if b < len(v.text) && (v.text[b] == ')' || v.text[b] == '>') {
				b++
			}
		}
	case linkPlain:
		switch {
		case metadataAddress(address):
			if s.outgoing || s.linkField(v) {
				code = CodeLinkMetadata
			}
		case bytes.IndexByte(address, '?') > 0 && payload(address, 256):
			code = CodeLinkExfiltration
		}
	case linkScript:
		if s.outgoing || start > 0 && bytes.IndexByte([]byte(`("'=<`), v.text[start-1]) >= 0 || s.linkField(v) {
			code = CodeLinkScript
		}
	}
	if code != "" {
		s.find(v, code, a, b)
	}
}

// linkField says that v is the value of a member that holds an address.
func (s *scan) linkField(v *view) bool {
	switch string(v.name) {
	case "uri", "url", "href", "src", "link", "icon", "websiteUrl":
		return true
	}
	return false
}

// payload says that the address carries at least n bytes that mean nothing to a reader, in its query or in one segment of its
// path or host.
func payload(address []byte, n int) bool {
	_, rest, _ := bytes.Cut(address, []byte("//"))
	path, query, _ := bytes.Cut(rest, []byte("?"))
	if n < 100 {
		for _, part := range bytes.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '.' }) {
			if len(part) >= 48 && opaque(part) {
				return true
			}
		}
	}
	for _, pair := range bytes.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, ok := bytes.Cut(pair, []byte("="))
		if !ok {
			value = pair
		}
		if len(value) >= n && (opaque(value) || bytes.ContainsAny(value, "%+") || n < 100) {
			return true
		}
	}
	return false
}

// opaque says that t reads like encoded bytes.
func opaque(t []byte) bool {
	odd := 0
	for _, c := range t {
		if byteClass[c]&cBase64 == 0 && c != '%' {
			odd++
		}
	}
	return odd == 0 && entropy(t) > 3.2 && (bytes.ContainsAny(t, "0123456789") || entropy(t) > 4.2)
}

var (
	templateMark  = regexp.MustCompile(`[{<\[](\{|%7b)?[\p{Han}A-Za-z_ ]{2,40}(\}|%7d)?[}>\]]|%7B[A-Za-z_]+%7D|\$\{?[A-Za-z_]+|(?i)[?&/=](YOUR|THE|INSERT|DATA|SECRET|CONTENT)_?(DATA|SECRET|CONTENT|CONVERSATION|HERE|SUMMARY|KEY|TOKEN)\b`)
	metadataHosts = [][]byte{[]byte("169.254.169.254"), []byte("169.254.170.2"), []byte("metadata.google.internal"), []byte("100.100.100.200"), []byte("[fd00:ec2::254]"), []byte("metadata.azure.com"), []byte("192.0.0.192"), []byte("0xa9fea9fe"), []byte("2852039166"), []byte("169.254.169.253"), []byte("instance-data.ec2.internal"), []byte("metadata.tencentyun.com"), []byte("[::ffff:169.254.169.254]"), []byte("[::ffff:a9fe:a9fe]")}
)

// templated says that the address has a place for something to be filled in.
func templated(address []byte) bool { return templateMark.Match(address) }

// metadataAddress says that the host is a cloud's metadata service.
func metadataAddress(address []byte) bool {
	_, rest, ok := bytes.Cut(bytes.ToLower(address), []byte("//"))
	if !ok {
		return false
	}
	host := rest
	if i := bytes.IndexAny(rest, "/?#\\"); i >= 0 {
		host = rest[:i]
	}
	if i := bytes.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	for _, h := range metadataHosts {
		if bytes.HasPrefix(host, h) && (len(host) == len(h) || host[len(h)] == ':' || host[len(h)] == '.') {
			return true
		}
	}
	return false
}

var sensitiveFile = regexp.MustCompile(`(?i)(/etc/(passwd|shadow|sudoers|ssh/)|/proc/|/sys/|/\.ssh(/|$)|/\.aws(/|$)|/\.kube(/|$)|/\.gnupg|/\.docker/config|\.env(\.|$)|/id_(rsa|ed25519|ecdsa)|\.pem$|\.key$|/\.netrc|/\.npmrc|/\.git-credentials|/mcp\.json|/root/|\\windows\\system32|/windows/system32|/var/run/|login%20data|wallet\.dat|/\.bash_history|/\.config/gcloud)`)

// uri judges the address of a resource, which a client may be asked to read.
func (s *scan) uri(v *view) {
	l := bytes.ToLower(bytes.TrimSpace(v.text))
	switch {
	case bytes.HasPrefix(l, []byte("file:")) || bytes.HasPrefix(l, []byte("/")) || bytes.HasPrefix(l, []byte("\\\\")):
		c := CodeLinkFile
		if decoded, ok := unpercent(l); ok {
			l = decoded.text
		}
		if sensitiveFile.Match(l) || bytes.Contains(l, []byte("../")) || bytes.HasPrefix(l, []byte("\\\\")) || bytes.HasPrefix(l, []byte("file://")) && len(l) > 7 && l[7] != '/' && !bytes.HasPrefix(l, []byte("file://localhost/")) {
			c = CodeLinkSensitiveFile
		}
		s.find(v, c, 0, len(v.text))
	case metadataAddress(l):
		s.find(v, CodeLinkMetadata, 0, len(v.text))
	case bytes.HasPrefix(l, []byte("javascript:")), bytes.HasPrefix(l, []byte("vbscript:")), bytes.HasPrefix(l, []byte("data:text/html")):
		s.find(v, CodeLinkScript, 0, len(v.text))
	}
}
