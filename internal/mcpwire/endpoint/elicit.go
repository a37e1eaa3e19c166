package endpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// Clients that can ask their user are asked to agree to calls (R7.6): those of the handshake era by a request on the stream of
// the call, those of the modern era by the result of the call, which they then make again. The form is the same.

const methodElicit = "elicitation/create"

// What the form lets choose. A client that fills in something else has not agreed.
const (
	approveOnce = "approve once"
	decline     = "decline"

	decisionSchema = `{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":["` + approveOnce + `","` + decline + `"]}},"required":["decision"]}`
)

// approvalKey is our question among the input requests of a result.
const approvalKey = "org.ostiary.approval"

// elicits says whether a client's capabilities let it be shown a form. An empty capability means forms alone.
func elicits(capabilities []byte) bool {
	c := content.Member(capabilities, "elicitation")
	if !content.IsObject(c) {
		return false
	}
	return content.IsObject(content.Member(c, "form")) || content.Member(c, "url") == nil
}

// elicitParams are those of the request. They name no mode: without one it is a form, in every revision.
func elicitParams(q call.Question) []byte {
	return content.NewObject(nil).String("message", q.Message).Raw("requestedSchema", []byte(decisionSchema)).End()
}

// consentOf reads a client's answer. What is no clear answer is none.
func consentOf(result []byte) call.Consent {
	action, _ := content.String(content.Member(result, "action"))
	switch action {
	case "decline":
		return call.Disagreed
	case "cancel":
		return call.Dismissed
	case "accept":
		switch decision, _ := content.String(content.Member(content.Member(result, "content"), "decision")); decision {
		case approveOnce:
			return call.Agreed
		case decline:
			return call.Disagreed
		}
	}
	return call.NoConsent
}

// inputRequired is the result that asks a modern client.
func inputRequired(r *call.Reply) []byte {
	ask := content.NewObject(nil).String("method", methodElicit).Raw("params", elicitParams(*r.Question)).End()
	return content.NewObject(nil).String("resultType", "input_required").
		Raw("inputRequests", content.NewObject(nil).Raw(approvalKey, ask).End()).
		String("requestState", r.State).
		Raw("_meta", content.NewObject(nil).Raw(content.KeyOutcome, content.OutcomeJSON(r.Outcome)).End()).End()
}

// answeredBy is what has come back with a call that was asked about; nil if it brings no state.
func answeredBy(p *content.CallParams) *call.Answered {
	if p.RequestState == nil {
		return nil
	}
	state, _ := content.String(p.RequestState)
	return &call.Answered{State: state, Consent: consentOf(content.Member(p.InputResponses, approvalKey))}
}

// asked are the requests of ours that a handshake-era client has still to answer. The zero value is ready.
type asked struct {
	mu   sync.Mutex // guards open
	open map[string]chan []byte
}

// ask sends a request and waits for its result; nil: there is none. When ctx ends, the request is cancelled.
func (a *asked) ask(ctx context.Context, send func(write func(dst []byte) []byte), method string, params []byte) []byte {
	id, answer := "ostiary-"+rand.Text(), make(chan []byte, 1)
	a.mu.Lock()
	if a.open == nil {
		a.open = map[string]chan []byte{}
	}
	a.open[id] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, id)
	}()
	send(func(dst []byte) []byte { return content.AppendRequest(dst, id, method, params) })
	select {
	case result := <-answer:
		return result
	case <-ctx.Done():
		send(func(dst []byte) []byte {
			return content.AppendNotification(dst, noteCancelled, content.NewObject(nil).String("requestId", id).String("reason", "the question is settled").End())
		})
		return nil
	}
}

// answer takes a client's response. One to what was not asked, or has been answered, means nothing.
func (a *asked) answer(f *content.Frame) {
	id, _ := content.IDString(f.ID)
	a.mu.Lock()
	answer := a.open[id]
	delete(a.open, id)
	a.mu.Unlock()
	if answer != nil {
		answer <- bytes.Clone(f.Result) // there is room: it is the only answer
	}
}
