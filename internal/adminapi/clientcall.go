package adminapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary/ostiary"
)

// ErrUnanswered says of a call that the gateway may have placed it and has not said what became of it.
var ErrUnanswered = errors.New("the gateway has not said what became of the call")

const (
	// cancelWithin bounds how long a call that was cancelled is waited for: the gateway still has to write its outcome down.
	cancelWithin = 10 * time.Second
	// cancelAgain is how soon a call that has not arrived yet is cancelled once more.
	cancelAgain = 20 * time.Millisecond
)

// Call places a call. Progress does not cross processes. When ctx ends the call is cancelled, and its outcome is waited for
// within a bound: what is known of the effect is never lost on the way. ErrUnanswered, wrapped: it is not known.
func (c *Client) Call(ctx context.Context, r ostiary.CallRequest) (ostiary.CallReply, error) {
	if err := ctx.Err(); err != nil {
		return ostiary.CallReply{}, err
	}
	waiting, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	type ending struct {
		reply ostiary.CallReply
		err   error
	}
	ended := make(chan ending, 1)
	id := rand.Text()
	go func() { // ends with the answer, or when Call leaves
		var e ending
		e.reply, e.err = ask[ostiary.CallReply](waiting, c, "Call", calling{r, id})
		ended <- e
	}()
	select {
	case e := <-ended:
		return e.reply, unanswered(e.err)
	case <-ctx.Done():
	}
	bound := time.NewTimer(cancelWithin)
	defer bound.Stop()
	again := time.NewTicker(cancelAgain)
	defer again.Stop()
	go c.cancel(waiting, id, again.C) // ends when the gateway knows, or when Call leaves
	select {
	case e := <-ended:
		return e.reply, unanswered(e.err)
	case <-bound.C:
		return ostiary.CallReply{}, fmt.Errorf("cancel the call: %w within %s", ErrUnanswered, cancelWithin)
	}
}

// cancel cancels a call, which may not have arrived yet.
func (c *Client) cancel(ctx context.Context, id string, again <-chan time.Time) {
	for {
		if found, err := askAt[bool](ctx, c, cancelPath, ofID{id}); found || err != nil {
			return
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// unanswered tells apart what the gateway has refused, and what has ended without its word.
func unanswered(err error) error {
	if err == nil || errors.Is(err, ErrNotRunning) {
		return err
	}
	if _, ok := errors.AsType[*remoteError](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}
