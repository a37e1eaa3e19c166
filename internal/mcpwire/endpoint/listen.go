package endpoint

import (
	"bytes"
	"net/http"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// listenFilter reads what a subscriptions/listen asks for. Of all that can be asked for, this server has changes of the
// tool list; nothing else is acknowledged, and nothing else is ever sent (S-061).
func listenFilter(params []byte) (tools bool, a answer, ok bool) {
	filter := content.Member(params, "notifications")
	if !content.IsObject(filter) {
		return false, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications must be an object"), false
	}
	switch v := content.Member(filter, "toolsListChanged"); string(v) {
	case "true":
		return true, answer{}, true
	case "", "false":
		return false, answer{}, true
	default:
		return false, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications.toolsListChanged must be a boolean"), false
	}
}

func ackParams(id []byte, tools bool) []byte {
	filter := content.NewObject(nil)
	if tools {
		filter.Bool("toolsListChanged", true)
	}
	return content.NewObject(nil).Raw("_meta", subscriptionMeta(id)).Raw("notifications", filter.End()).End()
}

func changedParams(id []byte) []byte {
	return content.NewObject(nil).Raw("_meta", subscriptionMeta(id)).End()
}

// listenEnd is the result that says that the server ends a subscription in good order.
func listenEnd(id []byte) answer {
	return answer{result: content.NewObject(nil).String("resultType", "complete").Raw("_meta", subscriptionMeta(id)).End()}
}

func subscriptionMeta(id []byte) []byte {
	return content.NewObject(nil).Raw(keySubscriptionID, id).End()
}

// listenHTTP holds a subscription open on the goroutine of its request, and holds nothing else: no buffer, no goroutine of
// its own, not the request's body (L-3).
func (e *Endpoint) listenHTTP(x *exchange, req *request) {
	tools, a, ok := listenFilter(req.params)
	if !ok {
		x.write(&a, req.id)
		return
	}
	if !x.streams {
		a = failure(http.StatusNotAcceptable, codeInvalidRequest, "Accept must include text/event-stream")
		x.write(&a, req.id)
		return
	}
	if !e.listens.take() {
		x.unavailable("too many subscriptions")
		return
	}
	defer e.listens.give()
	if !e.enter() {
		x.unavailable("the server is shutting down")
		return
	}
	defer e.running.Done()
	defer e.requests.lend()()

	id := bytes.Clone(req.id)
	*req = request{}
	ch := x.export.hub.join()
	defer x.export.hub.leave(ch)
	rc := http.NewResponseController(x.w)
	x.beginEvents()
	if !x.event(rc, noteAck, ackParams(id, tools)) {
		return
	}
	if !tools {
		ch = nil // acknowledged as nothing: the stream is only kept open
	}
	keep := time.NewTicker(e.o.KeepAlive)
	defer keep.Stop()
	for {
		select {
		case <-x.r.Context().Done():
			return
		case <-e.closing:
			end := listenEnd(id)
			x.send(rc, append(end.append([]byte(eventBegin), id, true), eventEnd...))
			return
		case <-ch:
			if !x.event(rc, noteToolsChange, changedParams(id)) {
				return
			}
		case <-keep.C:
			if !x.send(rc, commentKeep) {
				return
			}
		}
	}
}

func (x *exchange) event(rc *http.ResponseController, method string, params []byte) bool {
	b := content.AppendNotification([]byte(eventBegin), method, params)
	return x.send(rc, append(b, eventEnd...))
}

func (x *exchange) send(rc *http.ResponseController, b []byte) bool {
	if _, err := x.w.Write(b); err != nil {
		return false
	}
	return rc.Flush() == nil
}
