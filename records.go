package ostiary

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// record appends one entry that belongs to no call, and waits until it is on disk.
func (h *Host) record(ctx context.Context, kind ledger.Kind, body map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("record %s: %w", kind, err)
	}
	e := ledger.Entry{Time: h.o.Now(), Kind: kind, Body: raw}
	return h.store.Update(ctx, func(tx store.Tx) error { return tx.Append(e) })
}

// append adds one entry that belongs to no call to a transaction.
func (h *Host) append(tx store.Tx, kind ledger.Kind, principal string, body map[string]any) error {
	raw, err := marshal(body)
	if err != nil {
		return fmt.Errorf("record %s: %w", kind, err)
	}
	return tx.Append(ledger.Entry{Time: h.o.Now(), Kind: kind, Principal: principal, Body: raw})
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

// note appends an entry without waiting. A ledger that cannot be written stops calls by itself, so a failure here is only
// logged.
func (h *Host) note(kind ledger.Kind, principal string, body map[string]any) {
	raw, err := json.Marshal(body)
	if err != nil {
		h.log.Error("record", "kind", kind, "err", err)
		return
	}
	e := ledger.Entry{Time: h.o.Now(), Kind: kind, Principal: principal, Body: raw}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // called from where there is no context; bounded
	defer cancel()
	if err := h.store.Enqueue(ctx, func(tx store.Tx) error { return tx.Append(e) }); err != nil {
		h.log.Warn("record", "kind", kind, "err", err)
	}
}

// providerEvent writes what happens to a provider into the ledger. None of it is the server's own words.
func (h *Host) providerEvent(e provider.Event) {
	s := e.Status
	body := map[string]any{"provider": s.Package, "state": s.State.String()}
	if s.Reason != nil {
		body["reason"] = string(s.Reason.Code)
	}
	switch e.Kind {
	case provider.EventStarted:
		h.phase(s.Package, "ready")
		h.events.Started(s.Package)
		body["generation"], body["revision"], body["catalog"], body["tool_contract"] = s.Generation, s.Revision, s.CatalogDigest, s.ToolContract
		body["world_events"] = s.WorldEvents
		tools := map[string]string{}
		for _, t := range e.Provider.Catalog().Tools {
			tools[string(t.ID)] = t.DescriptorDigest.String()
		}
		body["tools"] = tools
		h.note(ledger.KindProviderStarted, "", body)
	case provider.EventFailed:
		h.phase(s.Package, "failed")
		h.events.Failed(s.Package)
		body["phase"] = s.Phase
		if se, ok := e.Err.(*provider.StartError); ok {
			body["phase"] = se.Phase.String()
		}
		h.note(ledger.KindProviderFailed, "", body)
	case provider.EventChanged:
		changes := make([]string, 0, len(s.Changes))
		for _, c := range s.Changes[:min(len(s.Changes), 100)] {
			changes = append(changes, string(c.Kind)+" "+c.Tool)
		}
		body["changes"], body["count"] = changes, len(s.Changes)
		h.note(ledger.KindCatalogChanged, "", body)
	default:
		h.note(ledger.KindProviderState, "", body)
	}
}

// endpointRefused writes what the endpoint refused before it was a call.
func (h *Host) endpointRefused(kind, principal, detail string) {
	h.note(ledger.KindProtocolRefused, principal, map[string]any{"refused": kind, "detail": detail})
}
