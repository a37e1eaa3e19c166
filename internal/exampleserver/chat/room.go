package chat

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// Message is one message in a group.
type Message struct {
	N      int    `json:"n" jsonschema:"number of the message in its group, from 1"`
	Author string `json:"author"`
	Text   string `json:"text"`

	id string
	at time.Time
}

// maxMessages bounds a group, and maxGroups the groups.
const (
	maxMessages = 10_000
	maxGroups   = 1_000
)

// rooms are all groups. A group begins with its first message.
type rooms struct {
	run string // makes the ids of one run unlike those of another
	now func() time.Time

	mu     sync.Mutex // guards what follows
	groups map[string][]Message
	said   int // in all groups
}

func newRooms(now func() time.Time) *rooms {
	return &rooms{run: rand.Text()[:12], now: now, groups: map[string][]Message{}}
}

// say adds a message. An error says that nothing was added.
func (r *rooms) say(group, author, text string) (Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.groups[group]
	if len(before) == maxMessages || before == nil && len(r.groups) == maxGroups {
		return Message{}, fmt.Errorf("group %s is full", group)
	}
	m := Message{N: len(before) + 1, Author: author, Text: text, at: r.now()}
	r.said++
	m.id = fmt.Sprintf("%s-%d", r.run, r.said)
	r.groups[group] = append(before, m)
	return m, nil
}

// after lists the messages of a group with a number above n.
func (r *rooms) after(group string, n int) []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.groups[group]
	return append([]Message{}, all[min(max(n, 0), len(all)):]...)
}
