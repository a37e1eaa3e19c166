package ostiary

import (
	"errors"

	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/vault"
)

// Fault sorts what [Operations] and [Review] refuse, for callers in this process and in others. An error that is of no
// such kind is a failure.
type Fault string

// The kinds of refusals.
const (
	FaultNone        Fault = ""
	FaultAmbiguous   Fault = "ambiguous"    // a name means no tool, or more than one
	FaultNotFound    Fault = "not_found"    // there is no such request, item, definition or quarantine
	FaultDecided     Fault = "decided"      // somebody was there first
	FaultOver        Fault = "over"         // its time has run out
	FaultNotEntitled Fault = "not_entitled" // it is not for this one to decide
	FaultInvalid     Fault = "invalid"      // the decision itself cannot be
	FaultLocked      Fault = "vault_locked" // the vault's key is missing, or is not the right one
	FaultNoVault     Fault = "no_vault"     // there is no vault yet
	FaultDamaged     Fault = "damaged"      // what was kept is not what was written
)

// faults are looked through in order: the first that an error is gives its kind.
var faults = []struct {
	kind Fault
	is   error
}{
	{FaultAmbiguous, ErrAmbiguous},
	{FaultLocked, vault.ErrLocked},
	{FaultInvalid, vault.ErrInvalid},
	{FaultNoVault, vault.ErrNoVault},
	{FaultDamaged, vault.ErrDamaged},
	{FaultDamaged, evidence.ErrDamaged},
	{FaultNotEntitled, approval.ErrNotEntitled},
	{FaultInvalid, approval.ErrNoSession},
	{FaultInvalid, approval.ErrExact},
	{FaultInvalid, approval.ErrScope},
	{FaultInvalid, approval.ErrNotGranted},
	{FaultInvalid, ErrInvalidDecision},
	{FaultInvalid, ErrInvalidQuery},
	{FaultInvalid, ErrAheadOfWorld},
	{FaultDecided, approval.ErrDecided},
	{FaultDecided, admission.ErrDecided},
	{FaultDecided, evidence.ErrDecided},
	{FaultOver, approval.ErrOver},
	{FaultOver, evidence.ErrOver},
	{FaultNotFound, approval.ErrUnknown},
	{FaultNotFound, admission.ErrUnknown},
	{FaultNotFound, evidence.ErrUnknown},
	{FaultNotFound, store.ErrNotFound},
	{FaultNotFound, vault.ErrNotFound},
}

// ErrInvalidDecision says that a decision cannot be what was meant: everything at once where there was an admission before,
// a verb that does not exist, nothing to decide on.
var ErrInvalidDecision = errors.New("the decision cannot be taken so")

// FaultOf sorts an error, whether it comes from this process or, through the admin API, from another.
func FaultOf(err error) Fault {
	if f, ok := errors.AsType[interface {
		error
		Fault() Fault
	}](err); ok {
		return f.Fault()
	}
	for _, f := range faults {
		if errors.Is(err, f.is) {
			return f.kind
		}
	}
	return FaultNone
}
