package admission

import (
	"errors"
	"time"

	"github.com/ostiary/ostiary/internal/review"
)

// Reason is why something is in quarantine, from a closed list.
type Reason string

// The reasons.
const (
	DefinitionChanged   Reason = "definition_changed"   // a tool is not the one that was admitted
	InstructionsChanged Reason = "instructions_changed" // the server's instructions are not those that were admitted
	OriginChanged       Reason = "origin_changed"       // the provider is not started or reached as when it was admitted
	ContractChanged     Reason = "contract_changed"     // tool-contract holds now and did not when the provider was admitted, or the other way round
	ChangeRefused       Reason = "change_refused"       // the change was looked at and refused, and is still offered
	SchemaDrift         Reason = "schema_drift"         // a call found a tool that is not the expected one (R6.6)
	ByOperator          Reason = "operator"             // somebody put it there
)

// Quarantine keeps a tool, or a whole provider, from being used until somebody has looked. It outlives a restart.
type Quarantine struct {
	Provider string
	Tool     string // raw name; "": the whole provider
	Reason   Reason
	Detail   string // our own words, made visible and bounded
	Since    time.Time
	By       string // principal; "" for the runtime
}

const maxDetail = 500

// Isolate puts a tool or a provider into quarantine. What is there already stays as it was found first, unless somebody
// puts it there by hand.
func Isolate(tx QuarantineRows, q Quarantine) error {
	if q.Provider == "" || q.Reason == "" || q.Since.IsZero() {
		return errors.New("quarantine needs a provider, a reason and a time")
	}
	if _, ok, err := quarantineOf(tx, q.Provider, q.Tool); err != nil || ok && q.Reason != ByOperator {
		return err
	}
	q.Detail = review.Clip(q.Detail, maxDetail)
	return tx.PutQuarantine(q)
}

// Release lets a tool or a provider out. It says what it was there for; ok is false if it was not there. What it offers is
// compared with its pins all the same: a definition that nobody has admitted stays out.
func Release(tx QuarantineRows, provider, tool string) (q Quarantine, ok bool, err error) {
	if q, ok, err = quarantineOf(tx, provider, tool); err != nil || !ok {
		return Quarantine{}, false, err
	}
	return q, true, tx.DeleteQuarantine(provider, tool)
}

func quarantineOf(tx QuarantineRows, provider, tool string) (Quarantine, bool, error) {
	all, err := tx.Quarantines()
	if err != nil {
		return Quarantine{}, false, err
	}
	for _, q := range all {
		if q.Provider == provider && q.Tool == tool {
			return q, true, nil
		}
	}
	return Quarantine{}, false, nil
}
