package call

import (
	"context"
	"time"
)

// ID names one call, one generation of calls never reuses it. It is shown to callers and is the ledger's join key.
type ID string

// Principal is who calls, resolved from a credential before anything else happens. It never holds the credential.
type Principal struct {
	ID string // stable, fit for logs and the ledger
}

// Request is a caller's wish, as an edge has translated it (step 2 of the path).
type Request struct {
	Principal Principal
	Export    string // through which export it came; "" from the operator's own command line
	Session   string // the inbound protocol session, "" if there is none
	Tool      ToolID

	// Arguments is the raw JSON object that the caller sent, syntactically checked; nil means that there was none.
	Arguments []byte
	// Meta is the caller's _meta as a raw JSON object without the keys that the protocol or the runtime reserves; nil: none.
	Meta []byte

	// Frontier is what the caller has seen of the world (R5.6); nil: it does not say.
	Frontier Frontier

	// Collect is the id of an earlier call, the same as this one, whose held result is asked for now that somebody may have
	// released it. Nothing is ever sent for such a request. "": it is a call.
	Collect ID

	// Ask puts a question to the person behind the client while the call waits. It returns what that person has said, and
	// NoConsent soon after ctx ends. nil: nobody can be asked so.
	Ask func(ctx context.Context, q Question) Consent
	// AskBack says that the client can be asked by the reply: it then makes the call anew, with an Answered.
	AskBack bool
	// Answered is what came of such a question. nil: the client was not asked.
	Answered *Answered

	// Progress takes the provider's progress, in order, never after Call has returned. nil: the caller wants none.
	Progress func(Progress)
	// Log takes the provider's log messages of this call (notifications/message). nil: the caller wants none.
	Log func(LogMessage)
	// LogLevel is the least severe level that the caller asked for; "" if none.
	LogLevel string
}

// Question is what the person behind a client is asked: whether the call may go. Its words are our own, or the caller's.
type Question struct{ Message string }

// Answered is what came of a question in a reply: the state that went with it, as it has come back, and what was said.
type Answered struct {
	State   string
	Consent Consent
}

// Consent is what a person has said to a question. The zero value is nothing.
type Consent uint8

// What can be said.
const (
	NoConsent Consent = iota
	Agreed
	Disagreed
	Dismissed // somebody else is to decide
)

// Progress is one progress notification of a running call. Numbers are the provider's JSON, kept exact.
type Progress struct {
	Progress []byte // a JSON number
	Total    []byte // a JSON number, or nil
	Message  string
}

// LogMessage is one log message that a provider sent for a running call.
type LogMessage struct {
	Level  string
	Logger string
	Data   []byte // any JSON value
}

// Reply is what the path hands back to an edge. Exactly one of Result and Error is set when the provider's own answer is
// released; neither is when the path itself speaks, through Outcome.
type Reply struct {
	Outcome Outcome
	Result  []byte         // the provider's result object, byte for byte
	Error   *ProviderError // the provider's JSON-RPC error

	// Frontier is what the caller has seen after the call, of the scopes that the call observes or publishes: what it stated,
	// and the call's own commit where nothing stands between the two. After a stale frontier it is where those scopes stand.
	Frontier Frontier
	// Missed are the commits that a stale frontier does not know, oldest first, as many as fit (R5.6).
	Missed []Commit

	// Provenance is where Result comes from and how it was judged (R8.2); its zero value says nothing.
	Provenance Provenance

	// Question is put to the person behind the client, and State goes with it; nil: nobody is asked. The call is over, and is
	// to be made anew with the answer.
	Question *Question
	State    string

	// Release gives the memory of Result back once it has been written out; nil: there is nothing to give back. Calling it is
	// never needed, and nothing may look at Result afterwards.
	Release func()
}

// Provenance says of a result where it comes from and how it was judged (R8.2). Nothing in it is the provider's own word.
type Provenance struct {
	Provider   string
	Tool       ToolID
	CallID     ID
	Descriptor Digest // of the definition under which the tool was called
	Revision   string // of MCP, as it was negotiated
	Time       time.Time
	Verdict    string
	ReleasedBy string // who let in what had been held; "": it was never held
}

// ProviderError is a JSON-RPC error that a provider answered with; Data is its raw JSON.
type ProviderError struct {
	Code    int64
	Message string
	Data    []byte
}

// Answer is what came back from a provider, before anything is concluded from it. Delivery is measured at the connection,
// never guessed.
type Answer struct {
	Delivery Delivery

	// A result object. ResultType is "complete" when the field is absent (S-003).
	Result     []byte
	ResultType string
	IsError    bool

	// A JSON-RPC error.
	Error *ProviderError

	// Fault is set when no valid answer came: its code and a detail for operators.
	Fault  Code
	Detail string
	// Words go with a fault and are the runtime's own, fit for the caller; only what is answered in process has any.
	Words string
	// Frontier is what somebody who reads the result has seen of the world by it; nil: nothing. Only what is answered in
	// process says so.
	Frontier Frontier
	// Foreign says that words of strangers are in the result, and perhaps what is private, whatever the labels of the tool say
	//
	Foreign bool

	// HTTPStatus is that of the provider's endpoint if it explains a fault; 0 otherwise.
	HTTPStatus int

	// Contract says that tool-contract v1 was negotiated on the connection. ContractCode is then what the result's own
	// metadata says (R4.6): contract_unknown, contract_invalid if it cannot be understood, "" if it says nothing.
	Contract     bool
	ContractCode Code

	// Release gives the memory of Result and Error back; nil: there is nothing to give back. See [Reply].
	Release func()
}
