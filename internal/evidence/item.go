package evidence

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/ostiary/ostiary/call"
)

// ID names an item. It is no secret: it opens nothing.
type ID string

// Hash is the SHA-256 of a payload as it was held (R8.7).
type Hash [32]byte

func (h Hash) String() string { return "sha256:" + hex.EncodeToString(h[:]) }

// Item is what may be seen of something held without the key. A value of it is a snapshot.
type Item struct {
	ID        ID
	CallID    call.ID // "" where there was no call, as for a definition; so for the next two
	Session   string
	Principal string // whose call it was
	Provider  string
	Tool      call.ToolID
	Direction Direction

	Verdict     string   // the firewall's, by name
	Reasons     []string // its reason codes
	Sensitivity string   // by name
	Excerpt     string   // redacted; "" once the item is purged

	SHA256  Hash
	Size    int64 // of the payload
	Created time.Time
	Expires time.Time // then it is purged, and until that is done it cannot be read or released

	State    State
	Decision Decision // the release or the rejection; stays when the item is purged
	Purge    Decision // that it was purged

	// Of a result that its caller may still be given. Claim is what a later call must be to get it, and Outcome is what is known
	// of the call that it is the result of; a claim of zero is nobody's.
	Claim    call.Digest
	Outcome  call.Outcome
	Delivery Delivery
}

// Delivery is that a released result was handed over. The zero value is none.
type Delivery struct {
	To call.ID // the call that was answered with it; never "" in one that took place
	At time.Time
}

// Decision is a step that was taken. The zero value is none.
type Decision struct {
	To     State
	By     string // the principal, or [Gateway]; never "" in a step that was taken
	At     time.Time
	Reason string // in the decider's words
}

// Gateway is who decides when no person does.
const Gateway = "ostiary"

// Admitted says whether the payload may enter a model's context, a projection or an action: only what someone has released
// may, as long as it is kept (R8.1).
func (i *Item) Admitted(now time.Time) bool { return i.State == Released && !i.over(now) }

// Record is the body of the ledger's record of the last step that was taken, by whom and why (R9.1).
func (i *Item) Record() ([]byte, error) {
	d := i.Decision
	if i.State == Purged {
		d = i.Purge
	}
	return json.Marshal(map[string]string{"decider": d.By, "evidence": string(i.ID), "reason": d.Reason, "sha256": i.SHA256.String(), "state": i.State.String()})
}

// over says that the item's time is over.
func (i *Item) over(now time.Time) bool { return !now.Before(i.Expires) }
