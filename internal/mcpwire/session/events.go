package session

import (
	"slices"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// The world-events extension (R5), and where servers of the handshake era said the same.
const (
	worldEvents = content.WorldEvents
	eventMethod = "notifications/" + worldEvents + "/event"
	eventLogger = "aurora/event"
	eventLevel  = "info"
)

// offersEvents says whether a server is told of world-events.
func (s *Session) offersEvents() bool {
	return s.opts.WorldEvents && s.opts.Events != nil && s.http == nil
}

// eventsHold says whether both sides agree on events: by strict settings in the modern era, by the switch alone in the
// era that had none. On HTTP there is no stream that would carry them for long (R5.5).
func (s *Session) eventsHold(modern bool, caps []byte) bool {
	if modern {
		return s.offersEvents() && holdsV1(caps, worldEvents)
	}
	return s.opts.LegacyEvents && s.opts.Events != nil && s.http == nil
}

func (s *Session) eventsAgreed(holds bool) {
	if s.opts.Events != nil {
		s.opts.Events.Agreed(holds)
	}
}

// discovered looks at the answer to server/discover before anything that comes after it: an event that is sent at once is
// one that the server may send. Whether all of the answer is in order is seen later, and if it is not the start fails.
func (s *Session) discovered(result []byte) {
	theirs, _ := revisionList(content.Member(result, "supportedVersions"))
	if slices.Contains(theirs, modernRevisions[0]) && s.eventsHold(true, content.Member(result, "capabilities")) {
		s.eventsAgreed(true)
	}
}

// legacyEvent says whether a log message is an event: of that logger, from a server of the handshake era, where the switch
// says so (R5.4). The era is known from the answer to initialize on, though the session may hear of it a moment later.
func (s *Session) legacyEvent(params []byte) bool {
	if !s.opts.LegacyEvents || s.opts.Events == nil || s.http != nil {
		return false
	}
	if logger, ok := content.String(content.Member(params, "logger")); !ok || logger != eventLogger {
		return false
	}
	n := s.agreed()
	if n.Revision != "" {
		return !n.Modern
	}
	if c, ok := s.carrier.(sdkCarrier); ok && c.InitializeResult() != nil {
		s.eventsAgreed(true)
	}
	return true
}
