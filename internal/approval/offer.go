package approval

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
)

// elicitation begins the name under which the person behind a calling client decides. Its colon keeps it apart from the
// principals that a configuration can name.
const elicitation = "elicitation:"

// ByElicitation is the decider that stands for the person behind a principal's client (R7.6).
func ByElicitation(principal string) string { return elicitation + principal }

// Offerable says whether a request may be put to the person behind the client that makes the call: only one to let a call
// out, whose arguments can all be shown.
func (r *Request) Offerable() bool {
	return r.Evidence == "" && !r.Cut && len(r.Arguments) <= maxOffered
}

// maxOffered bounds the arguments that a client's form is trusted to show whole.
const maxOffered = 4 << 10

// Form is what that person is shown: our own words, the tool, its effect, and the arguments with secrets redacted. Nothing
// that a provider said is in it.
func (r *Request) Form() string {
	s := fmt.Sprintf("A call waits until somebody agrees to it. Nothing has been sent.\n\nTool: %s\nEffect: %s\n", r.Tool, r.Effect)
	if r.Arguments == "" {
		s += "Arguments: none\n"
	} else {
		s += "Arguments:\n" + r.Arguments + "\n"
	}
	return s + "\nTo approve lets exactly this call through, once. (request " + string(r.ID) + ")"
}

// Bounds of offers.
const (
	offerLife     = 10 * time.Minute // how long an answer is waited for
	maxOffers     = 3                // of one request: nobody is asked the same thing without end
	maxRemembered = 1024             // requests
	maxState      = 1 << 10          // bytes of a state
)

// ErrOffer says of a state that it is none of this call, or that it has been used, or that its time is over.
var ErrOffer = errors.New("the state is not one that can be used for this call")

// Offers remembers what has been put to the people behind clients, in this process. Where the answer comes with a new call, a
// sealed state goes with the question: it opens for the same principal and the same call alone, for a while, and once (S-052,
// S-053, S-054). It is safe for concurrent use.
type Offers struct {
	aead cipher.AEAD // the key is this process's own: after a restart every state is void

	mu   sync.Mutex // guards open
	open map[ID]*offer
}

// offer is what is known of one request.
type offer struct {
	times     int
	dismissed bool
	expires   time.Time // of the request: then it can be forgotten
	made      time.Time // of the state that is out
	nonce     string    // of the state that is out; "": none is
}

// NewOffers makes an empty memory with a key of its own.
func NewOffers() (*Offers, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a key for states: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a key for states: %w", err)
	}
	return &Offers{aead: aead, open: map[ID]*offer{}}, nil
}

// Offer counts that r is put to somebody, and gives the state that goes with the question. ok is false if r is not to be
// offered, or not again.
func (o *Offers) Offer(r *Request, now time.Time) (state string, ok bool) {
	if !r.Offerable() || r.State != Waiting || r.over(now) {
		return "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.open[r.ID]
	if f == nil {
		if len(o.open) >= maxRemembered {
			o.forgetLocked(now)
		}
		if len(o.open) >= maxRemembered {
			return "", false
		}
		f = &offer{expires: r.Expires}
		o.open[r.ID] = f
	}
	if f.dismissed || f.times >= maxOffers {
		return "", false
	}
	f.times++
	f.made, f.nonce = now, rand.Text()
	sealed := o.aead.Seal(nil, nil, []byte(f.nonce+string(r.ID)), associated(r.Principal, r.CallDigest))
	return base64.RawURLEncoding.EncodeToString(sealed), true
}

// Take opens a state that has come back with the call b, and uses it up: it never opens again. It says which request the
// question was about. ErrOffer: it is none of this call, or not any more.
func (o *Offers) Take(state string, b *Binding, now time.Time) (ID, error) {
	if len(state) > maxState {
		return "", ErrOffer
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return "", ErrOffer
	}
	plain, err := o.aead.Open(nil, nil, sealed, associated(b.Principal, b.CallDigest))
	if err != nil || len(plain) < nonceSize {
		return "", ErrOffer
	}
	nonce, id := string(plain[:nonceSize]), ID(plain[nonceSize:])
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.open[id]
	if f == nil || f.nonce != nonce {
		return "", ErrOffer
	}
	f.nonce = ""
	if elapsed(f.made, f.made.Add(offerLife), now) {
		return "", ErrOffer
	}
	return id, nil
}

// Dismiss says that somebody did not want to decide: the request is left to others.
func (o *Offers) Dismiss(id ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.open[id]; f != nil {
		f.dismissed = true
	}
}

func (o *Offers) forgetLocked(now time.Time) {
	for id, f := range o.open {
		if !now.Round(0).Before(f.expires.Round(0)) {
			delete(o.open, id)
		}
	}
}

// nonceSize is that of rand.Text.
const nonceSize = 26

const labelOffer = "ostiary approval offer 1"

func associated(principal string, c call.Digest) []byte {
	d := digest(labelOffer, []byte(principal), c[:])
	return d[:]
}
