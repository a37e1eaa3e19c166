package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// Labels say what calls of a tool do to the flow of information. The zero value is none.
type Labels uint8

// The labels.
const (
	ReadsUntrusted Labels = 1 << iota // its results may hold text that strangers wrote
	ReadsPrivate                      // its results may hold what is not for everyone
	Egress                            // its arguments reach others
)

var labelNames = [...]string{"reads_untrusted", "reads_private", "egress"}

// LabelNames lists the labels as configuration writes them.
func LabelNames() []string { return slices.Clone(labelNames[:]) }

// ParseLabels reads labels as configuration writes them.
func ParseLabels(names []string) (Labels, error) {
	var l Labels
	for _, n := range names {
		i := slices.Index(labelNames[:], n)
		if i < 0 {
			return 0, fmt.Errorf("label %q: expected one of %s", n, strings.Join(labelNames[:], ", "))
		}
		l |= 1 << i
	}
	return l, nil
}

// Names lists the labels that are set.
func (l Labels) Names() []string { return namesOf(labelNames[:], uint8(l)) }

func (l Labels) String() string { return strings.Join(l.Names(), ", ") }

// Taint is what a session has read so far. It only grows.
type Taint uint8

// The taints.
const (
	Untrusted Taint = 1 << iota
	Private
)

const allTaints = Untrusted | Private

var taintNames = [...]string{"untrusted", "private"}

// Names lists the taints that are set, as rules see them in session.taints.
func (t Taint) Names() []string { return namesOf(taintNames[:], uint8(t)) }

func (t Taint) String() string { return strings.Join(t.Names(), ", ") }

// ParseTaint reads taints by their names.
func ParseTaint(names []string) (Taint, error) {
	var t Taint
	for _, n := range names {
		i := slices.Index(taintNames[:], n)
		if i < 0 {
			return 0, fmt.Errorf("taint %q: expected one of %s", n, strings.Join(taintNames[:], ", "))
		}
		t |= 1 << i
	}
	return t, nil
}

// Valid says whether t holds nothing but taints that exist. A store must not hand out others.
func (t Taint) Valid() bool { return t&^allTaints == 0 }

func namesOf(names []string, bits uint8) []string {
	out := []string{}
	for i, n := range names {
		if bits&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// The trust tiers whose results are taken for our own. Results of any other, a missing one included, may have been written
// by anyone: a review of a server that a user added says what its program does, not what texts come out of it.
var trustedTiers = []string{"CONTROLLED_LOCAL", "ORG_MANAGED"}

// defaultLabels are those of a tool that configuration gives none. They come from what an operator has said of the tool, its
// effect class and its provider's tier; annotations are never a ground (R6.7).
//
//   - SENSITIVE_READ reads what is private, by its definition.
//   - EXTERNAL_SIDE_EFFECT reaches others, by its definition. It is the class of a tool that declares none, too.
//   - Every tool of a provider that is not trusted returns what strangers may have written, whatever else it does.
//
// What cannot be derived: that a trusted provider hands on foreign texts (mail, tickets, web pages), and that a remote
// READ_ONLY tool learns from its arguments. Such tools are to be labelled.
func defaultLabels(e call.EffectClass, trust string) Labels {
	var l Labels
	switch e {
	case call.SensitiveRead:
		l = ReadsPrivate
	case call.ReadOnly, call.LocalSideEffect:
	default:
		l = Egress
	}
	if !slices.Contains(trustedTiers, trust) {
		l |= ReadsUntrusted
	}
	return l
}

// Labels are those that configuration gives a tool, or else the defaults of its effect class and of its provider's tier.
func (p *Policy) Labels(tool *call.Descriptor) Labels {
	set := p.sets[tool.Package]
	if o := set.Tools[tool.Name]; o.Labels != nil {
		return *o.Labels
	}
	return defaultLabels(tool.Effect, set.Trust)
}

// taintOf is what reading leaves behind.
func (l Labels) taintOf() Taint {
	var t Taint
	if l&ReadsUntrusted != 0 {
		t |= Untrusted
	}
	if l&ReadsPrivate != 0 {
		t |= Private
	}
	return t
}

// carriesOut says whether a call of a tool with these labels could carry private data out at a stranger's wish. What the
// call itself reads counts with what the session has read: a tool that does all three needs no help from another.
func (l Labels) carriesOut(t Taint) bool {
	return l&Egress != 0 && (t|l.taintOf())&allTaints == allTaints
}

// AfterCall is the taint of a session in which tool was called, once its outcome is known. Only a call of which nothing was
// sent leaves it as it is: a failure, a lost answer and a withheld result may each have been preceded by progress that the
// caller has seen. The zero outcome stands for a call that is about to be sent.
func (p *Policy) AfterCall(t Taint, tool *call.Descriptor, o call.Outcome) Taint {
	if o.Delivery == call.NotSent {
		return t
	}
	return t | p.Labels(tool).taintOf()
}
