package evidence

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// Tx is what evidence needs of a read-write transaction of the store.
type Tx interface {
	// InsertEvidence keeps a new item and, unless it is nil, its sealed payload. An id that is there already is
	// store.ErrConflict. Neither is changed afterwards by the caller.
	InsertEvidence(i Item, sealed []byte) error
	// Evidence reads one item; ok is false if there is none.
	Evidence(id ID) (i Item, ok bool, err error)
	// DecideEvidence keeps i in place of the item of its id, which must have the state from, else it is store.ErrConflict.
	// The payload of an item that is then purged is removed. Only state, excerpt, decisions and delivery may differ.
	DecideEvidence(from State, i Item) error
	// EvidenceSize is how many bytes of sealed payloads there are, with what this transaction has done to them.
	EvidenceSize() (int64, error)
	// EvidenceShare is how many of them are of one provider.
	EvidenceShare(provider string) (Share, error)
}

// Share is what is kept of one provider, in bytes of sealed payloads.
type Share struct {
	All    int64
	Events int64 // those of All that are of events
}

// View is what evidence needs of a read-only transaction.
type View interface {
	// Evidence reads one item; ok is false if there is none.
	Evidence(id ID) (i Item, ok bool, err error)
	// ListEvidence lists the items that a filter finds, newest first.
	ListEvidence(f Filter) ([]Item, error)
	// SealedEvidence reads a payload; ok is false if there is none, or no more.
	SealedEvidence(id ID) (sealed []byte, ok bool, err error)
}

// MaxPage is how many items a page has at most.
const MaxPage = 1000

// Filter says which items are meant. What is zero is not asked for.
type Filter struct {
	CallID    call.ID
	Provider  string
	States    []State   // one of them
	ExpiredAt time.Time // time over by then, and not purged

	Before ID  // those that were kept before this one; one that does not exist finds none
	Limit  int // at most so many; 0 or more than MaxPage: MaxPage
}

// Matches says whether the filter finds the item, pages aside.
func (f *Filter) Matches(i *Item) bool {
	if f.CallID != "" && i.CallID != f.CallID || f.Provider != "" && i.Provider != f.Provider {
		return false
	}
	if !f.ExpiredAt.IsZero() && (i.State == Purged || !i.over(f.ExpiredAt)) {
		return false
	}
	for _, s := range f.States {
		if i.State == s {
			return true
		}
	}
	return len(f.States) == 0
}

// Page is the number of items that are asked for.
func (f *Filter) Page() int {
	if f.Limit <= 0 || f.Limit > MaxPage {
		return MaxPage
	}
	return f.Limit
}
