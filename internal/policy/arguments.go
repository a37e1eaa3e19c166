package policy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the arguments that a rule looks at. What is beyond cannot be looked at, and a rule that tries denies.
const (
	maxDepth  = 64
	maxValues = 50_000
	maxText   = 64 << 10 // bytes of one text; longer ones may be there, but cannot be read
)

var (
	errNotObject  = errors.New("the arguments are not a JSON object")
	errTooDeep    = errors.New("the arguments are nested too deeply for a rule")
	errTooMany    = errors.New("the arguments hold too many values for a rule")
	errTooLong    = errors.New("a text in the arguments is too long for a rule")
	errInexact    = errors.New("a number in the arguments cannot be held exactly")
	errNoneAtHand = errors.New("the arguments are not known")
)

// readArguments reads a JSON object for CEL: objects as map[string]any, arrays as []any, everything else as CEL's own
// values, integers as int or uint and other numbers as double. A value that cannot be held as it is becomes a CEL error in its place, which concerns only the
// rules that look at it.
func readArguments(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	r := reader{dec: jsontext.NewDecoder(bytes.NewBuffer(raw))}
	if r.dec.PeekKind() != '{' {
		return nil, errNotObject
	}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errNotObject // something follows
	}
	return m, nil
}

type reader struct {
	dec    *jsontext.Decoder
	values int
}

func (r *reader) value(depth int) (any, error) {
	if r.values++; r.values > maxValues {
		return nil, errTooMany
	}
	if depth > maxDepth {
		return nil, errTooDeep
	}
	t, err := r.dec.ReadToken()
	if err != nil {
		return nil, errNotObject // the parser's words may quote the arguments
	}
	switch t.Kind() {
	case '{':
		m := map[string]any{}
		for r.dec.PeekKind() == '"' {
			k, err := r.dec.ReadToken()
			if err != nil {
				return nil, errNotObject
			}
			key := k.String() // the token is good until the next is read
			if m[key], err = r.value(depth + 1); err != nil {
				return nil, err
			}
		}
		return m, r.end()
	case '[':
		l := []any{}
		for k := r.dec.PeekKind(); k != ']' && k != 0; k = r.dec.PeekKind() {
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		return l, r.end()
	case '"':
		s := t.String()
		if len(s) > maxText {
			return types.WrapErr(errTooLong), nil
		}
		return types.String(s), nil
	case '0':
		return number(t.String()), nil
	case 't', 'f':
		return types.Bool(t.Bool()), nil
	case 'n':
		return types.NullValue, nil
	}
	return nil, errNotObject
}

func (r *reader) end() error {
	if _, err := r.dec.ReadToken(); err != nil {
		return errNotObject
	}
	return nil
}

// number keeps integers exact: one that neither int64 nor uint64 holds is an error, never a rounded value. So is a number
// with a fraction or an exponent where floating point no longer tells neighbouring integers apart.
func number(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return types.Int(i)
		}
		if u, err := strconv.ParseUint(s, 10, 64); err == nil {
			return types.Uint(u)
		}
		return types.WrapErr(errInexact)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) >= 1<<53 {
		return types.WrapErr(errInexact)
	}
	return types.Double(f)
}
