package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// Bounds of a listing beside those of the profile (F-23, F-37).
const (
	maxListBytes    = 64 << 20
	maxCursor       = 64 << 10
	maxToolWarnings = 100
)

// errUnstable is the end of a listing that was voided again and again.
var errUnstable = errors.New("the tool list changed each time before it was read to its end")

// errStaleCursor says that the server does not know its own cursor any more.
var errStaleCursor = errors.New("the server refuses its own cursor")

// listedDigest remembers what the first complete listing was.
type listedDigest struct {
	mu        sync.Mutex // guards what follows
	known     bool
	sum       [32]byte
	comparing atomic.Bool
}

func (d *listedDigest) get() ([32]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sum, d.known
}

func (d *listedDigest) setOnce(sum [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known {
		d.known, d.sum = true, sum
	}
}

// List reads the whole tool list, complete and stable, or fails (R2.2).
func (s *Session) List(ctx context.Context) (provider.Listing, error) {
	_, again := s.listed.get()
	if !again {
		select {
		case <-s.changed: // what was announced before the first listing is in it
		default:
		}
	}
	l, err := s.list(ctx)
	if err != nil {
		return provider.Listing{}, s.explain(ctx, err)
	}
	if !again {
		s.listed.setOnce(l.Digest())
	}
	return l, nil
}

// list begins again whenever a change was announced while pages were read: announcements are counted in wire order, so
// none that came before the last page is missed.
func (s *Session) list(ctx context.Context) (provider.Listing, error) {
	refetched := false
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		before := s.changes.Load()
		l, err := s.pages(ctx)
		switch {
		case errors.Is(err, errStaleCursor) && !refetched: // S-083
			refetched = true
		case err != nil && s.changes.Load() != before && ctx.Err() != nil:
			return provider.Listing{}, fmt.Errorf("%w: %w", errUnstable, ctx.Err())
		case err != nil:
			return provider.Listing{}, err
		case s.changes.Load() == before:
			return l, nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return provider.Listing{}, fmt.Errorf("%w: %w", errUnstable, ctx.Err())
		case <-s.done:
			t.Stop()
			return provider.Listing{}, s.Err()
		}
	}
}

func (s *Session) pages(ctx context.Context) (provider.Listing, error) {
	var l provider.Listing
	var cursor *string // nil: the first page; "" is a cursor like any other (S-082)
	seen := map[string]bool{}
	for {
		if l.Pages++; l.Pages > s.opts.Limits.Pages {
			return l, fmt.Errorf("tools/list: more than %d pages", s.opts.Limits.Pages)
		}
		result, err := s.page(ctx, cursor)
		if err != nil {
			return l, err
		}
		if l.Bytes += int64(len(result)); l.Bytes > maxListBytes {
			return l, fmt.Errorf("tools/list: more than %d bytes", maxListBytes)
		}
		if err := s.takeTools(&l, result); err != nil {
			return l, err
		}
		next := content.Member(result, "nextCursor")
		if next == nil || string(next) == "null" {
			return l, nil
		}
		c, ok := content.String(next)
		switch {
		case !ok:
			return l, errors.New("tools/list: nextCursor is not a string")
		case len(c) > maxCursor:
			return l, fmt.Errorf("tools/list: a cursor of more than %d bytes", maxCursor)
		case seen[c]:
			return l, fmt.Errorf("tools/list: the server repeats a cursor after %d pages", l.Pages)
		}
		seen[c] = true
		cursor = &c
	}
}

func (s *Session) page(ctx context.Context, cursor *string) ([]byte, error) {
	var members []byte
	if cursor != nil {
		members = content.AppendString([]byte(`"cursor":`), *cursor)
	}
	resp, err := s.carrier.Do(ctx, &transport.Request{
		ID: s.newID(), Method: "tools/list", Header: s.header("tools/list", ""), Params: s.params(members),
		OnNotification: s.streamed(nil),
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("tools/list: %w", err)
	case resp.Error != nil && cursor != nil && resp.Error.Code == codeInvalidParams:
		return nil, errStaleCursor
	case resp.Error != nil && resp.Error.Code == codeMethodNotFound && !s.declaresTools():
		return []byte(`{"tools":[]}`), nil // a server without tools
	case resp.Error != nil:
		return nil, fmt.Errorf("tools/list: the server answers with error %d: %s", resp.Error.Code, printable(resp.Error.Message, 200))
	}
	if kind := content.Member(resp.Result, "resultType"); kind != nil && string(kind) != `"complete"` { // S-002, S-055
		return nil, errors.New("tools/list: the result is of a type that was not negotiated")
	}
	return resp.Result, nil
}

func (s *Session) declaresTools() bool {
	return content.IsObject(content.Member(s.agreed().Capabilities, "tools"))
}

// takeTools adds one page. On modern HTTP a tool whose header annotations are illegal is left out (R1.7, S-042).
func (s *Session) takeTools(l *provider.Listing, result []byte) error {
	tools := content.Member(result, "tools")
	if len(tools) == 0 || tools[0] != '[' {
		return errors.New("tools/list: the result has no array of tools")
	}
	for tool := range content.Elements(tools) {
		if !content.IsObject(tool) {
			return fmt.Errorf("tools/list: tool %d is not an object", len(l.Tools)+1)
		}
		if s.http != nil && s.agreed().Modern {
			if _, err := content.ParamHeaders(content.Member(tool, "inputSchema")); err != nil {
				if len(l.Warnings) < maxToolWarnings {
					name, _ := content.String(content.Member(tool, "name"))
					l.Warnings = append(l.Warnings, provider.ToolWarning{Tool: printable(name, 128), Reason: err.Error()})
				}
				continue
			}
		}
		if len(l.Tools) >= s.opts.Limits.Tools {
			return fmt.Errorf("tools/list: more than %d tools", s.opts.Limits.Tools)
		}
		l.Tools = append(l.Tools, tool)
	}
	return nil
}
