package content

import "strings"

// validTraceparent checks the W3C form: version-traceid-parentid-flags in lower-case hex, neither id all zero, version ff
// never, and nothing behind it in version 00 (S-018).
func validTraceparent(s string) bool {
	if len(s) < 55 || len(s) > 256 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags) || version == "ff" {
		return false
	}
	if strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return false
	}
	if len(s) == 55 {
		return true
	}
	return version != "00" && s[55] == '-' && printable(s)
}

func lowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// validTracestate checks a list of at most 32 key=value members in at most 512 printable bytes.
func validTracestate(s string) bool { return validList(s, 512, 32) }

// validBaggage checks a list of at most 64 key=value members in at most 8192 printable bytes.
func validBaggage(s string) bool { return validList(s, 8192, 64) }

func validList(s string, size, members int) bool {
	if s == "" || len(s) > size || !printable(s) {
		return false
	}
	n := 0
	for m := range strings.SplitSeq(s, ",") {
		m = strings.TrimSpace(m)
		if m == "" {
			continue // empty members are allowed
		}
		key, _, ok := strings.Cut(m, "=")
		if n++; !ok || strings.TrimSpace(key) == "" || n > members {
			return false
		}
	}
	return n > 0
}
