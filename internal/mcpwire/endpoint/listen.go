package endpoint

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// filter is what a subscription listens for.
type filter struct {
	tools     bool
	uris      []string // as the client wrote them, in its order
	resources map[string]call.Scope
}

// listenFilter reads what a subscriptions/listen asks for. Of all that can be asked for, this server has changes of the
// tool list, and of the resources that the export offers; nothing else is acknowledged, and nothing else is ever sent (S-061).
func (x *export) listenFilter(params []byte) (f filter, a answer, ok bool) {
	asked := content.Member(params, "notifications")
	if !content.IsObject(asked) {
		return f, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications must be an object"), false
	}
	switch v := content.Member(asked, "toolsListChanged"); string(v) {
	case "true":
		f.tools = true
	case "", "false":
	default:
		return f, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications.toolsListChanged must be a boolean"), false
	}
	list := content.Member(asked, "resourceSubscriptions")
	if list == nil {
		return f, answer{}, true
	}
	if !content.IsArray(list) {
		return f, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications.resourceSubscriptions must be an array"), false
	}
	f.resources = map[string]call.Scope{}
	for raw := range content.Elements(list) {
		uri, ok := content.String(raw)
		if !ok {
			return f, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications.resourceSubscriptions must hold strings"), false
		}
		if x.Resources == nil || f.resources[uri] != "" {
			continue
		}
		if scope, ok := x.resource(uri); ok {
			if len(f.uris) == maxWatched {
				return f, failure(http.StatusBadRequest, codeInvalidParams, "params.notifications.resourceSubscriptions: at most "+strconv.Itoa(maxWatched)+" resources are possible"), false
			}
			f.uris, f.resources[uri] = append(f.uris, uri), scope
		}
	}
	return f, answer{}, true
}

// watchFor begins to watch the resources of a filter.
func (e *Endpoint) watchFor(ctx context.Context, principal string, f filter) (w *watch, a answer, ok bool) {
	w = e.watchers.watch(principal)
	ctx, cancel := context.WithTimeout(ctx, resourcesTime)
	defer cancel()
	if err := w.subscribe(ctx, f.resources); err != nil {
		w.close()
		return nil, e.notSubscribed(err), false
	}
	return w, answer{}, true
}

func ackParams(id []byte, f filter) []byte {
	agreed := content.NewObject(nil)
	if f.tools {
		agreed.Bool("toolsListChanged", true)
	}
	if len(f.uris) > 0 {
		list := []byte{'['}
		for i, uri := range f.uris {
			if i > 0 {
				list = append(list, ',')
			}
			list = content.AppendString(list, uri)
		}
		agreed.Raw("resourceSubscriptions", append(list, ']'))
	}
	return content.NewObject(nil).Raw("_meta", subscriptionMeta(id)).Raw("notifications", agreed.End()).End()
}

// updatedOn tells a subscription that a resource has moved.
func updatedOn(id []byte, uri string) []byte {
	return content.NewObject(nil).Raw("_meta", subscriptionMeta(id)).String("uri", uri).End()
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
	f, a, ok := x.export.listenFilter(req.params)
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
	w, a, ok := e.watchFor(x.r.Context(), x.principal.ID, f)
	if !ok {
		x.write(&a, id)
		return
	}
	defer w.close()
	*req = request{}
	ch := x.export.hub.join()
	defer x.export.hub.leave(ch)
	rc := http.NewResponseController(x.w)
	x.beginEvents()
	if !x.event(rc, noteAck, ackParams(id, f)) {
		return
	}
	if !f.tools {
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
		case <-w.news:
			for _, uri := range w.take() {
				if !x.event(rc, noteResourceUpdated, updatedOn(id, uri)) {
					return
				}
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
