package firewall

// Class groups the codes of findings; a rule may name a whole class.
type Class string

// The classes.
const (
	ClassHiddenText   Class = "hidden_text"   // characters that a reader does not see
	ClassInstruction  Class = "instruction"   // text that gives orders to its reader
	ClassCredential   Class = "credential"    // keys, tokens, passwords
	ClassPersonalData Class = "personal_data" // about a person
	ClassLink         Class = "link"          // addresses that fetch, leak or point inwards
	ClassContentKind  Class = "content_kind"  // kinds, types and bytes of content blocks
	ClassShape        Class = "shape"         // not the document that it should be
	ClassOutputSchema Class = "output_schema" // against the tool's own schema
	ClassSize         Class = "size"          // over a bound
	ClassMismatch     Class = "mismatch"      // two parts of a result contradict each other
	ClassArgument     Class = "argument"      // arguments that mean more than they say
	ClassDefinition   Class = "definition"    // definitions that are more than a description
	ClassDetector     Class = "detector"      // the firewall itself could not finish
)

// Classes lists every class.
func Classes() []Class {
	return []Class{ClassHiddenText, ClassInstruction, ClassCredential, ClassPersonalData, ClassLink, ClassContentKind, ClassShape,
		ClassOutputSchema, ClassSize, ClassMismatch, ClassArgument, ClassDefinition, ClassDetector}
}

// Sensitivity is how sensitive what was found is (R8.3). The zero value is the one that is never passed by default.
type Sensitivity uint8

// The sensitivity classes of R8.3.
const (
	SensitivityUnknown Sensitivity = iota // UNKNOWN_SENSITIVE
	SensitivityNone
	UserPrivate
	OrgPrivate
	CredentialLike
	Regulated
)

var sensitivityNames = [...]string{"UNKNOWN_SENSITIVE", "NONE", "USER_PRIVATE", "ORG_PRIVATE", "CREDENTIAL_LIKE", "REGULATED"}

func (s Sensitivity) String() string { return nameOf(sensitivityNames[:], s) }

// MarshalText writes the name.
func (s Sensitivity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Protected says that nothing of this sensitivity passes unless a rule says so for the sensitivity itself or for the code
// (R8.4).
func (s Sensitivity) Protected() bool {
	return s != SensitivityNone && s != UserPrivate && s != OrgPrivate
}

// Action is what a finding does (R8.4). The zero value is quarantine.
type Action uint8

// The actions of R8.4, from the safe zero value on. [Action.harder] orders them.
const (
	Quarantine Action = iota
	Accept
	Redact
	Ask
	Reject
)

var actionNames = [...]string{"quarantine", "accept", "redact", "ask", "reject"}

func (a Action) String() string { return nameOf(actionNames[:], a) }

// MarshalText writes the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// ParseAction reads the name of an action.
func ParseAction(name string) (Action, bool) {
	for i, n := range actionNames {
		if n == name {
			return Action(i), true
		}
	}
	return Quarantine, false
}

// rank orders actions: accept, redact, ask, quarantine, reject. A value that is none of them ranks as quarantine.
func (a Action) rank() int {
	switch a {
	case Accept:
		return 0
	case Redact:
		return 1
	case Ask:
		return 2
	case Reject:
		return 4
	default:
		return 3
	}
}

// harder is the one of a and b that lets less through.
func (a Action) harder(b Action) Action {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// VerdictKind is the firewall's judgement (R8.2). The zero value is QUARANTINED.
type VerdictKind uint8

// The verdicts of R8.2. ProviderDrifted is given by the gate, never by this package.
const (
	Quarantined VerdictKind = iota
	AcceptedObservation
	AcceptedSuggestion
	ApprovalRequired
	Rejected
	ProviderDrifted
	SchemaInvalid
	PolicyBlocked
)

var verdictNames = [...]string{"QUARANTINED", "ACCEPTED_OBSERVATION", "ACCEPTED_SUGGESTION", "APPROVAL_REQUIRED", "REJECTED",
	"PROVIDER_DRIFTED", "SCHEMA_INVALID", "POLICY_BLOCKED"}

func (k VerdictKind) String() string { return nameOf(verdictNames[:], k) }

// MarshalText writes the name.
func (k VerdictKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Accepted says that what was judged may go on, as [Verdict.Released] has it.
func (k VerdictKind) Accepted() bool { return k == AcceptedObservation || k == AcceptedSuggestion }

// nameOf is the name of v, or that of the safe zero value.
func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return names[0]
}
