package ostiary

import "time"

const (
	clockSlack  = 5 * time.Minute // that the two clocks may be apart
	clockSteady = time.Hour       // that they must have agreed for
)

// steadiness is how far the wall clock can be trusted with what cannot be undone (F-09): it must agree with a clock that
// nobody can set, and have done so for a while. The zero value has seen neither yet.
type steadiness struct {
	seen  bool
	began time.Time     // what the wall clock showed when the other one stood at zero
	last  time.Duration // when they were last seen apart, by the other clock
	off   time.Duration // by how much they are apart
	apart bool
}

// look compares the two. steady: they agree, and have for an hour; jumped: they have just come apart.
func (s *steadiness) look(wall time.Time, up time.Duration) (steady, jumped bool) {
	wall = wall.Round(0) // without the reading of the other clock that it may carry
	if !s.seen {
		s.seen, s.began, s.last = true, wall.Add(-up), up
	}
	s.off = wall.Sub(s.began.Add(up))
	apart := s.off.Abs() > clockSlack
	jumped = apart && !s.apart
	if s.apart = apart; apart {
		s.last = up
	}
	return !apart && up-s.last >= clockSteady, jumped
}
