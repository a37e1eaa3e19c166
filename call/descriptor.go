package call

import "encoding/hex"

// Digest is a SHA-256 over RFC 8785 canonical JSON (integers kept exact).
type Digest [32]byte

func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// IsZero says that nothing was digested.
func (d Digest) IsZero() bool { return d == Digest{} }

// Descriptor is a tool as the runtime holds it: frozen when its catalog was frozen, shared by listing and routing, never
// changed afterwards. The byte slices are the provider's own JSON and must not be written to.
type Descriptor struct {
	ID      ToolID
	Package string
	RawName string // as the provider says it, sent to the provider and nowhere else
	Name    string // RawName, or the alias of the profile

	Title       string
	Description string
	Effect      EffectClass

	Definition   []byte // the whole tool object as listed
	InputSchema  []byte
	OutputSchema []byte // nil: none

	SchemaDigest     Digest // of InputSchema
	DescriptorDigest Digest // of Definition: all that a model would read
}

// ParamHeader is one x-mcp-header annotation: the argument at Path travels in the header Mcp-Param-<Name> as well.
type ParamHeader struct {
	Name string
	Path []string // keys of "properties", from the root
	Type string   // integer, string or boolean
}
