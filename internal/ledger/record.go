package ledger

import (
	"encoding/hex"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Kind says what a record is about. The list only grows.
type Kind string

// The kinds of records.
const (
	KindOpened          Kind = "ledger.opened"       // a gateway took the ledger
	KindClosed          Kind = "ledger.closed"       // and let go of it in order
	KindProviderStarted Kind = "provider.started"    // with negotiated revision and catalog digests
	KindProviderFailed  Kind = "provider.failed"     // with phase and cause
	KindProviderState   Kind = "provider.state"      // a change of lifecycle state, with its reason
	KindCatalogChanged  Kind = "mcp.catalog.changed" // R2.6
	KindCallRefused     Kind = "call.refused"        // refused before an intent: nothing was sent
	KindCallIntent      Kind = "call.intent"         // about to be sent (step 9)
	KindCallOutcome     Kind = "call.outcome"        // what is known afterwards (step 12)
	KindApprovalAsked   Kind = "approval.requested"  // R7.4
	KindApprovalDecided Kind = "approval.decided"    // granted, declined, blocked, expired, lapsed or taken back, by whom
	KindApprovalSpent   Kind = "approval.spent"      // in the transaction of the call's intent
	KindAdmission       Kind = "admission.decided"   // a definition was admitted or refused, by whom (R6.6)
	KindQuarantineSet   Kind = "quarantine.set"      // a tool or a provider was put out of use
	KindQuarantineEnded Kind = "quarantine.released" // and let in again
	KindTaintDropped    Kind = "taint.dropped"       // what a session has read was forgotten, by whom
	KindEvidenceDecided Kind = "evidence.decided"    // what the firewall held was released, rejected or purged
	KindResultDelivered Kind = "result.delivered"    // a held result that was released was handed to its caller, once
	KindWorldCommitted  Kind = "world.committed"     // events of a provider became facts: their ids, scopes, sequences and digests
	KindWorldRefused    Kind = "world.refused"       // events of a provider did not, how many and why
	KindPruned          Kind = "ledger.pruned"       // the content of old records was taken away, by whom
	KindProtocolRefused Kind = "endpoint.refused"    // an inbound request was refused before it was a call
)

// Entry is what a caller appends; the ledger adds sequence, hashes and the tree.
type Entry struct {
	Time      time.Time
	Kind      Kind
	CallID    call.ID // "" where it does not apply, as for the next two
	Session   string
	Principal string
	Body      []byte // one JSON object; made canonical (RFC 8785, integers exact) when it is appended; nil: {}
}

// Record is an entry in its place: what is stored, exported and verified.
type Record struct {
	Seq int64 // from 1, without gaps
	Entry
	Prev Hash // hash of the record before; zero for the first
	Hash Hash // RFC 6962 leaf hash of the record's canonical JSON without "hash"
	// Pruned is the ledger.pruned record that took the content away; 0: it is there. What remains is a tombstone, without
	// session, principal and body: see [Record.Tombstone].
	Pruned int64
}

// Hash is a SHA-256 hash of the chain or of the tree.
type Hash [32]byte

// String is the hash in lower-case hex, as records carry it.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Intent is a call that was let through and has no outcome yet. The row lives from step 9 to step 12.
type Intent struct {
	CallID    call.ID
	Seq       int64 // of its call.intent record; filled by the store
	Started   time.Time
	Principal string
	Session   string
	Tool      call.ToolID
	Provider  string       // the package
	Publish   []call.Scope // of the world, where the call commits if it is interrupted
}

// Tx is what the ledger needs of a read-write transaction of the store. Appends get their sequence in the order of the
// calls; they are in the chain exactly if the transaction commits.
type Tx interface {
	Append(Entry) error
	// OpenIntent keeps the intent until CloseIntent. A call id that is open already is store.ErrConflict.
	OpenIntent(Intent) error
	// CloseIntent ends an intent. One that is not open is store.ErrNotFound: a call has exactly one outcome (I2).
	CloseIntent(call.ID) error
	// Bury takes the content of records away and appends the record that vouches for that, both or neither. The sequences
	// ascend. One that does not exist is store.ErrNotFound; one that is pruned already is store.ErrConflict.
	Bury(seqs []int64, b Burial) error
	// OpenIntents lists all intents without an outcome, oldest first.
	OpenIntents() ([]Intent, error)
}

// Finder finds the records that a call can be rebuilt from: a [View] does, and an [ExportFile].
type Finder interface {
	// RecordsOfCall yields the records that carry the call id, in order.
	RecordsOfCall(id call.ID, yield func(Record) error) error
	// RecordsOfKind yields the records of a kind that belong to no call, in order.
	RecordsOfKind(kind Kind, yield func(Record) error) error
}

// View is what the ledger needs of a read-only transaction.
type View interface {
	// Records yields records with Seq > after in order, at most limit (0: all).
	Records(after int64, limit int, yield func(Record) error) error
	Finder
	// Head is the last record's sequence and hash; zero values when the ledger is empty.
	Head() (seq int64, hash Hash, err error)
	// Checkpoints yields the signed checkpoints (note format), oldest first.
	Checkpoints(yield func(seq int64, note []byte) error) error
}
