package endpoint

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type fakeHandle struct {
	id    string
	ended chan struct{}
	once  sync.Once
}

func (h *fakeHandle) ID() string   { return h.id }
func (h *fakeHandle) Wait() error  { <-h.ended; return nil }
func (h *fakeHandle) Close() error { h.once.Do(func() { close(h.ended) }); return nil }

// Whatever happens to sessions: there are never more than the bound; only a session's own principal finds it; one that is
// in use is neither evicted nor expired; making room costs nobody else a session; an ended one has its calls cancelled.
func TestSessionsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		table := newSessions(4, time.Hour, func() time.Time { return now })
		principals := []string{"alice", "bob"}
		type model struct {
			principal string
			held      []*session
		}
		live := map[string]*model{}
		sync := func() { // what the table has dropped is gone
			for id, m := range live {
				table.mu.Lock()
				_, there := table.byID[id]
				table.mu.Unlock()
				if !there {
					if len(m.held) > 0 {
						t.Fatalf("a session in use was dropped")
					}
					delete(live, id)
				}
			}
		}
		n := 0
		pick := func() string {
			ids := []string{"absent"}
			for i := range n {
				ids = append(ids, fmt.Sprint("s", i))
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Second)
			switch rapid.SampledFrom([]string{"bind", "bind", "hold", "release", "drop", "expire"}).Draw(t, "do") {
			case "bind":
				who := rapid.SampledFrom(principals).Draw(t, "who")
				others := 0
				for _, m := range live {
					if m.principal != who {
						others++
					}
				}
				id := fmt.Sprint("s", n)
				n++
				room := table.room(who)
				err := table.bind(&fakeHandle{id: id, ended: make(chan struct{})}, who, false)
				if room != (err == nil) {
					t.Fatalf("room says %v, bind says %v", room, err)
				}
				if err == nil {
					live[id] = &model{principal: who}
				}
				sync()
				for _, m := range live {
					if m.principal != who {
						others--
					}
				}
				if others != 0 {
					t.Fatal("somebody else's session had to go")
				}
			case "hold":
				id, who := pick(), rapid.SampledFrom(principals).Draw(t, "who")
				s, ok := table.hold(id, who)
				if m := live[id]; ok != (m != nil && m.principal == who) {
					t.Fatalf("hold(%s, %s) = %v", id, who, ok)
				} else if ok {
					m.held = append(m.held, s)
				}
			case "release":
				if m := live[pick()]; m != nil && len(m.held) > 0 {
					table.release(m.held[0])
					m.held = m.held[1:]
				}
			case "drop":
				id := pick()
				if m := live[id]; m != nil && len(m.held) > 0 {
					s := m.held[0]
					table.drop(s)
					if s.ctx.Err() == nil {
						t.Fatal("calls of an ended session go on")
					}
					for _, s := range m.held {
						table.release(s)
					}
					delete(live, id)
				}
			case "expire":
				id := pick()
				table.mu.Lock()
				s := table.byID[id]
				table.mu.Unlock()
				if s != nil {
					table.expire(s)
				}
			}
			sync()
			table.mu.Lock()
			if len(table.byID) > 4 || len(table.byID) != len(live) {
				t.Fatalf("%d sessions, the model has %d", len(table.byID), len(live))
			}
			table.mu.Unlock()
		}
		for _, m := range live {
			for _, s := range m.held {
				table.release(s)
			}
		}
		table.close()
		if len(table.byID) != 0 {
			t.Fatal("sessions after close")
		}
	})
}
