package approval

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(3)
		var mu sync.Mutex
		row := Request{ID: "a"}
		look := func(context.Context) (Request, error) {
			mu.Lock()
			defer mu.Unlock()
			return row, nil
		}
		var wg sync.WaitGroup
		got := make([]Request, 3)
		errs := make([]error, 3)
		for i := range got {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				id := ID("a")
				if i == 2 {
					id = "other" // decided for nobody: held to its end
				}
				got[i], errs[i] = h.Wait(ctx, id, func(ctx context.Context) (Request, error) {
					if id == "other" {
						return Request{ID: id}, nil
					}
					return look(ctx)
				})
			})
		}
		synctest.Wait()
		if _, err := h.Wait(t.Context(), "a", look); !errors.Is(err, ErrCrowded) {
			t.Errorf("a call too many waits: %v", err)
		}
		h.Notify("a") // for nothing: the row still waits
		synctest.Wait()
		if h.Waiting() != 3 {
			t.Errorf("%d wait", h.Waiting())
		}
		mu.Lock()
		row.State = Granted
		mu.Unlock()
		h.Notify("a", "nobody")
		wg.Wait()
		for i := range 2 {
			if errs[i] != nil || got[i].State != Granted {
				t.Errorf("waiter %d: %+v, %v", i, got[i], errs[i])
			}
		}
		if !errors.Is(errs[2], context.DeadlineExceeded) || got[2].ID != "other" {
			t.Errorf("held call: %+v, %v", got[2], errs[2])
		}
		if h.Waiting() != 0 || len(h.waiting) != 0 {
			t.Errorf("%d wait at the end", h.Waiting())
		}
		no := errors.New("no")
		if _, err := h.Wait(t.Context(), "a", func(context.Context) (Request, error) { return Request{}, no }); !errors.Is(err, no) {
			t.Errorf("got %v", err)
		}
	})
}

// A decision between a caller's question and its wait is not missed.
func TestHubMissesNothing(t *testing.T) {
	h := NewHub(1000)
	var mu sync.Mutex
	rows := map[ID]State{}
	var wg sync.WaitGroup
	for i := range 200 {
		id := ID(rune('a' + i))
		wg.Go(func() {
			if _, err := h.Wait(t.Context(), id, func(context.Context) (Request, error) {
				mu.Lock()
				defer mu.Unlock()
				return Request{State: rows[id]}, nil
			}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			mu.Lock()
			rows[id] = Declined
			mu.Unlock()
			h.Notify(id)
		})
	}
	wg.Wait()
}
