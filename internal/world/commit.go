package world

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// Fact is what is to be committed: once, to all of its scopes or to none.
type Fact struct {
	ID       string // never repeats: a second fact with an id that is known is a no-op
	Scopes   []call.Scope
	Provider string
	Source   string
	Kind     string
	Time     time.Time
	Occurred time.Time
	Summary  string
	Data     []byte // a JSON object; nil: none
	CallID   call.ID
}

// In is the fact as it stands in one scope.
func (f *Fact) In(scope call.Scope, seq int64) call.Commit {
	return call.Commit{Scope: scope, Seq: seq, ID: f.ID, Provider: f.Provider, Source: f.Source, Kind: f.Kind, Time: f.Time, Occurred: f.Occurred,
		Summary: f.Summary, Data: f.Data, CallID: f.CallID}
}

// Place is where a fact has been put: its sequence in each of its scopes.
type Place = call.Frontier

// Tx is what the world needs of a read-write transaction of the store.
type Tx interface {
	// PutFact gives the fact the next sequence in each of its scopes. The id of an event that is there already puts nothing,
	// and known is true: its place is then where it was put first. The fact of a call is not looked for: it is put in the
	// transaction that closes the call's intent, which can happen once.
	PutFact(Fact) (at Place, known bool, err error)
	// ScopeHead is the sequence of the last commit in a scope, 0 if there is none.
	ScopeHead(call.Scope) (int64, error)
	// CommitsAfter yields the commits of a scope with a sequence above after, in order, at most limit (0: all), those that this
	// transaction has put with them.
	CommitsAfter(scope call.Scope, after int64, limit int, yield func(call.Commit) error) error
}

// View is what the world needs of a read-only transaction.
type View interface {
	ScopeHead(call.Scope) (int64, error)
	CommitsAfter(scope call.Scope, after int64, limit int, yield func(call.Commit) error) error
	// ScopeHeads yields all scopes that have a commit, in order of their names, from the first after the one given, at most
	// limit (0: all).
	ScopeHeads(after call.Scope, limit int, yield func(call.Scope, int64) error) error
}
