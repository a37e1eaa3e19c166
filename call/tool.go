package call

import (
	"fmt"
	"strings"
)

// toolPrefix begins every tool id that stands for a provider's tool (R2.3).
const toolPrefix = "aur.mcp."

// WorldPackage stands in the place of a package for the tools that are built in (R2.5): their ids are aur.world.<name>. No
// provider can have it.
const WorldPackage = "aur.world"

// ToolID is the runtime's own name of a tool: aur.mcp.<package>.<name>. The name is the provider's raw name, or the alias
// that its profile gives to a name that does not fit (R2.3). A tool that is built in is aur.world.<name>.
type ToolID string

// NewToolID joins a package and a name. It does not validate; see [CheckPackage] and [CheckToolName].
func NewToolID(pkg, name string) ToolID {
	if pkg == WorldPackage {
		return ToolID(pkg + "." + name)
	}
	return ToolID(toolPrefix + pkg + "." + name)
}

// Split takes a tool id apart. A package may contain dots and a name may not, so the last dot divides them. The id of a
// provider's tool that claims to be of [WorldPackage] is none.
func (id ToolID) Split() (pkg, name string, ok bool) {
	if name, ok := strings.CutPrefix(string(id), WorldPackage+"."); ok {
		if name == "" || strings.Contains(name, ".") {
			return "", "", false
		}
		return WorldPackage, name, true
	}
	rest, ok := strings.CutPrefix(string(id), toolPrefix)
	if !ok {
		return "", "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot <= 0 || dot == len(rest)-1 || rest[:dot] == WorldPackage {
		return "", "", false
	}
	return rest[:dot], rest[dot+1:], true
}

// CheckPackage reports why pkg is no package: lower-case dotted segments, each [a-z][a-z0-9_-]*.
func CheckPackage(pkg string) error {
	for seg := range strings.SplitSeq(pkg, ".") {
		if seg == "" || seg[0] < 'a' || seg[0] > 'z' {
			return fmt.Errorf("package %q: each dotted segment starts with a lower-case letter", pkg)
		}
		for _, c := range []byte(seg) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
				return fmt.Errorf("package %q: only lower-case letters, digits, '_' and '-' in a segment", pkg)
			}
		}
	}
	return nil
}

// CheckToolName reports why name cannot be the last part of a tool id: a letter, then letters, digits, '_' or '-'.
// Case is kept (R2.3).
func CheckToolName(name string) error {
	if name == "" {
		return fmt.Errorf("tool name is empty")
	}
	if c := name[0] | 0x20; c < 'a' || c > 'z' {
		return fmt.Errorf("tool name %q does not start with a letter", name)
	}
	for _, c := range name {
		if lower := c | 0x20; (lower < 'a' || lower > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return fmt.Errorf("tool name %q has %q in it: only letters, digits, '_' and '-' are possible", name, c)
		}
	}
	return nil
}

// EffectClass says what a call of a tool may do to the world (R7.2). The zero value is the class of a tool that declares
// none: EXTERNAL_SIDE_EFFECT.
type EffectClass uint8

// The effect classes of R7.2.
const (
	ExternalSideEffect EffectClass = iota
	ReadOnly
	LocalSideEffect
	SensitiveRead
	UnsupportedEffect
)

var effectClassNames = [...]string{"EXTERNAL_SIDE_EFFECT", "READ_ONLY", "LOCAL_SIDE_EFFECT", "SENSITIVE_READ", "UNSUPPORTED_EFFECT"}

// EffectClasses lists the names of all effect classes, for messages and schemas.
func EffectClasses() []string { return effectClassNames[:] }

func (e EffectClass) String() string { return nameOf(effectClassNames[:], e) }

// ParseEffectClass reads the name of an effect class as configuration writes it.
func ParseEffectClass(s string) (EffectClass, error) {
	return parseName[EffectClass](effectClassNames[:], s, "effect class")
}

// Durable says whether the intent of a call must be on disk before the call is sent, whatever a profile says (R3.5).
func (e EffectClass) Durable() bool { return e != ReadOnly }

func nameOf[E ~uint8](names []string, e E) string {
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("invalid(%d)", e)
}

func parseName[E ~uint8](names []string, s, what string) (E, error) {
	for i, n := range names {
		if n == s {
			return E(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q: expected one of %s", what, s, strings.Join(names, ", "))
}
