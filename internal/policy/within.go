package policy

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// withinFunction is the one function that CEL does not have: PATH.within(FOLDER).
var withinFunction = cel.Function("within", cel.MemberOverload(overloadWithin, []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
	cel.BinaryBinding(func(path, folder ref.Val) ref.Val {
		p, ok1 := path.(types.String)
		f, ok2 := folder.(types.String)
		if !ok1 || !ok2 {
			return types.MaybeNoSuchOverloadErr(path)
		}
		return types.Bool(within(string(p), string(f)))
	})))

const overloadWithin = "string_within_string"

// within says whether path, as it is written, is folder or below it. It looks at nothing but the text: a symbolic link may
// lead anywhere, which is the sandbox's business. It is false for all that different programs read differently: a segment
// "..", a backslash, a NUL, a relative path where the folder is absolute.
func within(path, folder string) bool {
	if path == "" || folder == "" || strings.ContainsAny(path, "\\\x00") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == ".." {
			return false
		}
	}
	folder = strings.TrimRight(folder, "/")
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/') && (folder != "" || path[0] == '/')
}

// callCosts says what the calls cost whose cost depends on their operands and is not known to CEL.
type callCosts struct{}

func (callCosts) CallCost(_, overload string, args []ref.Val, _ ref.Val) *uint64 {
	if overload != overloadWithin || len(args) == 0 {
		return nil
	}
	n := uint64(1)
	if s, ok := args[0].(types.String); ok {
		n += uint64(len(s)) / 10
	}
	return &n
}
