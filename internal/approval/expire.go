package approval

import (
	"cmp"
	"slices"
	"time"
)

// Expire ends all requests and grants whose time has run out, and forgets what ended long ago. It returns what it ended,
// for the ledger and for those who wait. It is to be run every few seconds; nothing that matters hangs on how often,
// because every step looks at the time itself.
func (r *Rules) Expire(tx Tx, now time.Time) ([]Request, error) {
	var open, ended []Request
	if err := tx.EachApproval(func(q Request) bool {
		switch {
		case q.State.Ended():
			q.Summary, q.Arguments = "", "" // not needed here, and large
			ended = append(ended, q)
		case q.over(now):
			open = append(open, q)
		}
		return true
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(open, byAge)
	for i := range open {
		open[i].expire(now)
		if err := tx.PutApproval(open[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(ended, byAge)
	for i := range ended {
		if surplus := len(ended)-i > r.KeepMost; surplus || !within(r.Keep, ended[i].Created, now) && !r.restful(&ended[i], now) {
			if err := tx.DeleteApproval(ended[i].ID); err != nil {
				return nil, err
			}
		}
	}
	return open, nil
}

// restful says that q still keeps its call from being asked for again.
func (r *Rules) restful(q *Request, now time.Time) bool { return r.rests(q, now) != nil }

func byAge(a, b Request) int {
	return cmp.Or(a.Created.Round(0).Compare(b.Created.Round(0)), cmp.Compare(a.ID, b.ID))
}
