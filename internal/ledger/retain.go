package ledger

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// Needed says which records must keep their content, however old they are: what is still open, in force or to be decided
// hangs on them.
type Needed struct {
	Calls       map[call.ID]bool    // in work, or with something held of them
	Approvals   map[string]bool     // requests that wait, and grants that can be spent
	Admissions  map[int64]bool      // records of admissions, see [InForce]
	Quarantines map[Quarantine]bool // in force
}

// Quarantine names what is out of use: a tool, or with the tool "" the provider.
type Quarantine struct{ Provider, Tool string }

// Keeps says whether a record must keep its content. What cannot be read is kept.
func (n *Needed) Keeps(r *Record) bool {
	switch {
	case r.Pruned != 0 || r.Kind == KindPruned || n.Calls[r.CallID] && r.CallID != "":
		return true
	case r.Kind == KindApprovalAsked || r.Kind == KindApprovalDecided || r.Kind == KindApprovalSpent:
		b, err := read[approvalBody](r)
		return err != nil || n.Approvals[b.Approval]
	case r.Kind == KindAdmission:
		return n.Admissions[r.Seq]
	case r.Kind == KindQuarantineSet:
		b, err := read[struct {
			Provider string `json:"provider"`
			Tool     string `json:"tool"`
		}](r)
		return err != nil || n.Quarantines[Quarantine(b)]
	}
	return false
}

// InForce finds among the records of admissions, which stand in order, those that say what held at the cutoff or has been
// decided since: calls from then on were let through by them.
func InForce(admissions []Record, cutoff time.Time) map[int64]bool {
	type definition struct{ provider, name string }
	type decision struct {
		seq    int64
		digest string
	}
	held := map[definition][]decision{}
	needed := map[int64]bool{}
	for i := range admissions {
		r := &admissions[i]
		if r.Pruned != 0 {
			continue
		}
		b, err := read[admissionBody](r)
		if err != nil || !r.Time.Before(cutoff) {
			needed[r.Seq] = true
			continue
		}
		for name, digest := range b.Definitions {
			d := definition{b.Provider, name}
			var stay []decision // a refusal leaves in force what was admitted before
			if b.State != stateAdmitted {
				for _, was := range held[d] {
					if was.digest != digest {
						stay = append(stay, was)
					}
				}
			}
			held[d] = append(stay, decision{r.Seq, digest})
		}
	}
	for _, ds := range held {
		for _, d := range ds {
			needed[d.seq] = true
		}
	}
	return needed
}
