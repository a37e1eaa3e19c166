package call

import "encoding/json"

// Status is what is known of a call as a whole (R3.1). The zero value is unknown.
type Status uint8

// The outcomes of R3.1.
const (
	StatusUnknown Status = iota
	Succeeded
	Failed
	InputRequired
)

var statusNames = [...]string{"unknown", "succeeded", "failed", "input_required"}

func (s Status) String() string { return nameOf(statusNames[:], s) }

// MarshalText writes the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Status) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[Status](statusNames[:], string(b), "status")
	return err
}

// Delivery is how far the request is known to have travelled (R3.1). The zero value is unknown: bytes may have left and no
// answer says what happened.
type Delivery uint8

// The deliveries of R3.1.
const (
	DeliveryUnknown Delivery = iota
	NotSent
	Confirmed
)

var deliveryNames = [...]string{"unknown", "not_sent", "confirmed"}

func (d Delivery) String() string { return nameOf(deliveryNames[:], d) }

// MarshalText writes the name.
func (d Delivery) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name.
func (d *Delivery) UnmarshalText(b []byte) (err error) {
	*d, err = parseName[Delivery](deliveryNames[:], string(b), "delivery")
	return err
}

// Effect is what is known of the effect on the world. The zero value says nothing and is left out where it is shown.
type Effect uint8

// What can be known of an effect (R3.4).
const (
	EffectUnstated Effect = iota
	EffectNone
	EffectUnconfirmed
	EffectDone
)

var effectNames = [...]string{"", "none", "unconfirmed", "done"}

func (e Effect) String() string { return nameOf(effectNames[:], e) }

// MarshalText writes the name.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the name.
func (e *Effect) UnmarshalText(b []byte) (err error) {
	*e, err = parseName[Effect](effectNames[:], string(b), "effect")
	return err
}

// Outcome is what is known of one call. It is what the ledger records and what a client is told under
// _meta["org.ostiary/outcome"].
type Outcome struct {
	Status   Status   `json:"status"`
	Delivery Delivery `json:"delivery"`
	Effect   Effect   `json:"effect,omitempty"`
	Code     Code     `json:"code,omitempty"`
	Stage    Stage    `json:"stage,omitempty"`
	Retry    Retry    `json:"retry,omitempty"`
	CallID   ID       `json:"call,omitempty"`

	// Message is fit for a model: what happened, what is known of the effect, what to do. It never quotes the provider.
	Message string `json:"-"`
	// Detail is for operators: the cause, scrubbed of secrets. It goes to the log, never to a caller or the ledger.
	Detail string `json:"-"`
}

// MarshalJSON leaves out the keys that do not apply.
func (o Outcome) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 192)
	b = append(b, `{"status":"`...)
	b = append(b, o.Status.String()...)
	b = append(b, `","delivery":"`...)
	b = append(b, o.Delivery.String()...)
	b = append(b, '"')
	for _, kv := range [...]struct{ k, v string }{
		{"effect", o.Effect.String()}, {"code", string(o.Code)}, {"stage", string(o.Stage)}, {"retry", string(o.Retry)},
	} {
		if kv.v != "" { // all of them are words from closed lists: nothing to escape
			b = append(b, `,"`...)
			b = append(b, kv.k...)
			b = append(b, `":"`...)
			b = append(b, kv.v...)
			b = append(b, '"')
		}
	}
	if o.Status == InputRequired {
		b = append(b, `,"completed":false`...) // R3.8
	}
	if o.CallID != "" {
		id, err := json.Marshal(string(o.CallID))
		if err != nil {
			return nil, err
		}
		b = append(b, `,"call":`...)
		b = append(b, id...)
	}
	return append(b, '}'), nil
}
