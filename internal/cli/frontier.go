package cli

import (
	"errors"
	"io/fs"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// frontier puts together what --frontier says: scope=sequence, a JSON object, or a file with one. A file may hold a whole
// reply that has one in it, as ostiary call --json prints it. nil: nothing was said.
func (a *app) frontier(said []string) (call.Frontier, error) {
	var whole call.Frontier
	for _, text := range said {
		raw := []byte(text)
		switch scope, seq, pair := cutLast(text, '='); {
		case strings.HasPrefix(strings.TrimSpace(text), "{"):
		case pair && strings.Trim(seq, "0123456789") == "":
			quoted, err := jsontext.AppendQuote([]byte{'{'}, scope)
			if err != nil {
				return nil, usage("", "--frontier: %v", err)
			}
			raw = append(append(append(quoted, ':'), seq...), '}')
		default:
			var err error
			if raw, err = a.readInput(text); errors.Is(err, fs.ErrNotExist) {
				return nil, usage(frontierForms, "--frontier %s: it is no SCOPE=SEQUENCE, no JSON, and there is no such file", cleanLine(text, 200))
			} else if err != nil {
				return nil, err
			}
			whole := raw
			eachMember(whole, func(name string, v jsontext.Value) {
				if name == "frontier" && v.Kind() == '{' {
					raw = v
				}
			})
		}
		f, err := ostiary.ReadFrontier(raw)
		if err != nil {
			return nil, usage(frontierForms, "--frontier %s: %w", cleanLine(text, 200), err)
		}
		if whole == nil {
			whole = call.Frontier{}
		}
		for s := range f {
			if _, twice := whole[s]; twice {
				return nil, usage("", "--frontier: the scope %s is given twice", s)
			}
		}
		maps.Copy(whole, f)
	}
	return whole, nil
}

const frontierForms = `write SCOPE=SEQUENCE with a number (aurora:mcp:files=17), a JSON object ('{"aurora:mcp:files": 17}'), or name a file with one`

// cutLast cuts a text at the last sep; a scope may have one in it.
func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
