package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// MaxBody bounds the canonical body of one record. What is larger belongs into evidence, with its digest in the ledger.
const MaxBody = 16 << 20

// ErrBody says that a body is not one JSON object, or is too large.
var ErrBody = errors.New("record body is not a JSON object that the ledger takes")

// Times are kept as nanoseconds since 1970 in 64 bits; these are the whole years that fit.
const (
	minYear = 1678
	maxYear = 2261
)

// AppendBody appends the canonical form (RFC 8785, integers kept exact) of a record's body to dst; nil means {}. It is
// idempotent.
func AppendBody(dst, body []byte) ([]byte, error) {
	if len(body) == 0 {
		return append(dst, '{', '}'), nil
	}
	start := len(dst)
	dst = append(dst, body...)
	v := jsontext.Value(dst[start:len(dst):len(dst)])
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return dst[:start], fmt.Errorf("%w: %w", ErrBody, err)
	}
	if v.Kind() != '{' {
		return dst[:start], fmt.Errorf("%w: it is a %s", ErrBody, v.Kind())
	}
	if len(v) > MaxBody {
		return dst[:start], fmt.Errorf("%w: %d bytes, at most %d", ErrBody, len(v), MaxBody)
	}
	// Canonicalize works in place where it can; a longer result has moved to memory of its own.
	return append(dst[:start], v...), nil
}

// AppendCanonical appends the canonical JSON of r without its hash: the bytes that the hash is of. The members stand in
// the order of RFC 8785 by construction; r.Body must be canonical already.
func AppendCanonical(dst []byte, r *Record) []byte { return appendRecord(dst, r, false) }

// AppendLine appends the canonical JSON of r with its hash, or of its tombstone: one record's line of an export, without the
// newline.
func AppendLine(dst []byte, r *Record) []byte {
	if r.Pruned != 0 {
		return appendTombstone(dst, r)
	}
	return appendRecord(dst, r, true)
}

func appendRecord(dst []byte, r *Record, withHash bool) []byte {
	dst = append(dst, `{"body":`...)
	dst = append(dst, r.Body...)
	dst = append(dst, `,"call":`...)
	dst = appendString(dst, string(r.CallID))
	if withHash {
		dst = append(dst, `,"hash":"`...)
		dst = hex.AppendEncode(dst, r.Hash[:])
		dst = append(dst, '"')
	}
	dst = append(dst, `,"kind":`...)
	dst = appendString(dst, string(r.Kind))
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, r.Prev[:])
	dst = append(dst, `","principal":`...)
	dst = appendString(dst, r.Principal)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, r.Seq, 10)
	dst = append(dst, `,"session":`...)
	dst = appendString(dst, r.Session)
	dst = append(dst, `,"time":"`...)
	dst = r.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"', '}')
}

// appendString quotes s as RFC 8785 section 3.2.2.2 does. s is valid UTF-8: [normalise] saw to it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			dst, _ = jsontext.AppendQuote(dst, s) // an error means invalid UTF-8, which it has replaced
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// normalise makes the join keys fit for JSON. They may come from a peer: an odd byte in one must not keep a call out of
// the ledger (F-52), so it becomes U+FFFD.
func normalise(e *Entry) error {
	if !utf8.ValidString(string(e.CallID)) {
		e.CallID = call.ID(strings.ToValidUTF8(string(e.CallID), "\uFFFD"))
	}
	if !utf8.ValidString(string(e.Kind)) {
		e.Kind = Kind(strings.ToValidUTF8(string(e.Kind), "\uFFFD"))
	}
	if !utf8.ValidString(e.Session) {
		e.Session = strings.ToValidUTF8(e.Session, "\uFFFD")
	}
	if !utf8.ValidString(e.Principal) {
		e.Principal = strings.ToValidUTF8(e.Principal, "\uFFFD")
	}
	e.Time = e.Time.UTC().Round(0)
	if y := e.Time.Year(); y < minYear || y > maxYear {
		return fmt.Errorf("record time %s is out of range", e.Time.Format(time.RFC3339))
	}
	return nil
}
