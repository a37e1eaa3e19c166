//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ostiary/ostiary/interop/gateway"
	"github.com/ostiary/ostiary/interop/mcpraw"
)

// row is what is reported of one server.
type row struct {
	ID, About, Transport string
	Revision             string
	Listed, Allowed      int
	Bytes                int // of the tools as listed
	Call                 string
	Odd                  []string
	Skipped              string
	Err                  error
}

// checkServer puts a gateway in front of one server and compares what comes through it with what the server says itself.
func checkServer(ctx context.Context, at *place, p *peer) (r row) {
	r = row{ID: p.ID, About: p.About, Transport: "stdio"}
	if p.URL != "" {
		r.Transport = "http"
	}
	var skip errSkip
	if err := p.prepare(at); errors.As(err, &skip) {
		r.Skipped = err.Error()
		return r
	} else if err != nil {
		r.Err = err
		return r
	}
	r.Err = r.fill(ctx, at, p)
	return r
}

func (r *row) fill(ctx context.Context, at *place, p *peer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := p.up(ctx); err != nil {
		return err
	}
	defer p.down()

	own, err := p.direct(ctx)
	if err != nil {
		return fmt.Errorf("without the gateway: %w", err)
	}
	listed, err := own.List(ctx)
	if err != nil {
		return fmt.Errorf("without the gateway: %w", err)
	}
	ownResult, ownErr := own.Call(ctx, p.Call.Tool, string(p.Call.Arguments), nil)
	_ = own.Close()
	at.list(p.ID, listed)
	e := admit(p, listed)
	r.Listed, r.Allowed = len(listed), len(e.tools)
	for _, t := range listed {
		r.Bytes += len(t.Raw)
	}
	r.Odd = oddities(e, own)

	g, err := gateway.Start(ctx, gateway.Options{Bin: at.bin, Dir: filepath.Join(at.out, p.ID), Config: e.provider() + export("flat", e), Env: []string{p.bearerEnv() + "=" + p.Bearer}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	if r.Revision, err = negotiated(ctx, g, p.ID); err != nil {
		return err
	}
	switch {
	case r.Revision == p.Revision:
	case p.Slow && r.Revision == mcpraw.Legacy:
		r.Odd = append(r.Odd, "was up too late for the probe")
	default:
		return fmt.Errorf("negotiated %s, expected %s", r.Revision, p.Revision)
	}
	return throughGateway(ctx, g, r, e, ownResult, ownErr)
}

// throughGateway lists and calls at the gateway and compares.
func throughGateway(ctx context.Context, g *gateway.Gateway, r *row, e *entry, ownResult mcpraw.Object, ownErr error) error {
	c, err := g.Client(ctx, "/v1/mcp", "")
	if err != nil {
		return err
	}
	defer c.Close()
	shown, err := c.List(ctx)
	if err != nil {
		return err
	}
	if err := sameTools(e, shown); err != nil {
		return err
	}
	p := e.peer
	called := mcpraw.Tool{Name: p.Call.Tool}
	result, err := c.Call(ctx, e.flat(called), string(p.Call.Arguments), nil)
	if refused := (*mcpraw.RPCError)(nil); errors.As(err, &refused) {
		r.Call = fmt.Sprintf("%s: error %d of the server's", p.Call.Tool, refused.Code)
		return sameRefusal(p, refused, ownErr)
	} else if err != nil {
		return err
	}
	outcome := result.Object("_meta").Object("org.ostiary/outcome")
	r.Call = fmt.Sprintf("%s: %s, %s", p.Call.Tool, outcome.Text("status"), outcome.Text("delivery"))
	if code := outcome.Text("code"); code != "" {
		r.Call += ", " + code
	}
	if outcome.Text("status") == "" {
		return fmt.Errorf("call %s: the result has no outcome: %.300s", p.Call.Tool, result["content"])
	}
	return sameAnswer(p, outcome, result, ownResult, ownErr)
}

// sameTools checks that each allowed tool is shown once, nothing else is, and that no definition lost a byte but for its name.
func sameTools(e *entry, shown []mcpraw.Tool) error {
	want := map[string]mcpraw.Tool{}
	for _, t := range e.tools {
		want[e.flat(t)] = t
	}
	for _, t := range shown {
		w, ok := want[t.Name]
		if !ok {
			return fmt.Errorf("tools/list shows %q, which is not in the export", t.Name)
		}
		delete(want, t.Name)
		for key, value := range w.Object {
			if key != "name" && !bytes.Equal(value, t.Object[key]) {
				return fmt.Errorf("tool %q: %s was %.200s and is %.200s", t.Name, key, value, t.Object[key])
			}
		}
		for key := range t.Object {
			if _, ok := w.Object[key]; !ok {
				return fmt.Errorf("tool %q: %s was added", t.Name, key)
			}
		}
	}
	for name := range want {
		return fmt.Errorf("tools/list lacks %q", name)
	}
	return nil
}

// sameRefusal checks that a JSON-RPC error is the server's own.
func sameRefusal(p *peer, refused *mcpraw.RPCError, ownErr error) error {
	var own *mcpraw.RPCError
	if !errors.As(ownErr, &own) {
		return fmt.Errorf("call %s: %w; the server's own answer was none (%v)", p.Call.Tool, refused, ownErr)
	}
	if refused.Code != own.Code || refused.Message != own.Message {
		return fmt.Errorf("call %s: %w; the server's own is %w", p.Call.Tool, refused, own)
	}
	return nil
}

// sameAnswer checks that the gateway answered as the server did.
func sameAnswer(p *peer, outcome, result, ownResult mcpraw.Object, ownErr error) error {
	if ownErr != nil {
		return fmt.Errorf("call %s: the gateway's answer is %.300s; without it there is %w", p.Call.Tool, result["content"], ownErr)
	}
	status := "succeeded"
	if string(ownResult["isError"]) == "true" {
		status = "failed"
	}
	if outcome.Text("status") != status || outcome.Text("delivery") != "confirmed" {
		return fmt.Errorf("call %s: expected %s, confirmed; the outcome is %s", p.Call.Tool, status, result["_meta"])
	}
	if p.Call.Offline {
		if string(result["isError"]) != string(ownResult["isError"]) {
			return fmt.Errorf("call %s: isError is %s, the server's own %s", p.Call.Tool, result["isError"], ownResult["isError"])
		}
		return nil
	}
	if whole, _ := json.Marshal(p.Call.Expect); !strings.Contains(string(result["content"])+string(result["structuredContent"]), strings.Trim(string(whole), `"`)) {
		return fmt.Errorf("call %s: %q is not in %.500s", p.Call.Tool, p.Call.Expect, result["content"])
	}
	if p.Call.Volatile {
		return nil
	}
	for _, key := range []string{"content", "structuredContent", "isError"} {
		if !bytes.Equal(result[key], ownResult[key]) {
			return fmt.Errorf("call %s: %s is %.300s, the server's own %.300s", p.Call.Tool, key, result[key], ownResult[key])
		}
	}
	return nil
}

// negotiated reads a provider's revision from `ostiary status`.
func negotiated(ctx context.Context, g *gateway.Gateway, id string) (string, error) {
	status, err := g.Status(ctx)
	if err != nil {
		return "", err
	}
	providers, err := mcpraw.ParseArray(status["providers"])
	if err != nil {
		return "", fmt.Errorf("status: %w", err)
	}
	for _, raw := range providers {
		if o, err := mcpraw.ParseObject(raw); err == nil && o.Text("provider_id") == id {
			return o.Text("protocol_revision"), nil
		}
	}
	return "", fmt.Errorf("status has no provider %s: %s", id, status["providers"])
}

// oddities are what is worth telling of a server's list.
func oddities(e *entry, own *mcpraw.Client) []string {
	odd := append([]string(nil), e.left...)
	if n := len(e.aliases); n > 0 {
		odd = append(odd, fmt.Sprintf("%d names need an alias", n))
	}
	if own.Noise > 0 {
		odd = append(odd, fmt.Sprintf("%d lines of noise on standard output", own.Noise))
	}
	none, biggest, longest := 0, mcpraw.Tool{}, ""
	for _, t := range e.tools {
		if t.Object["description"] == nil {
			none++
		}
		if len(t.Raw) > len(biggest.Raw) {
			biggest = t
		}
		if name := e.flat(t); len(name) > len(longest) {
			longest = name
		}
	}
	if none > 0 {
		odd = append(odd, fmt.Sprintf("%d without a description", none))
	}
	if len(biggest.Raw) > 10_000 {
		odd = append(odd, fmt.Sprintf("%s is defined in %d bytes", biggest.Name, len(biggest.Raw)))
	}
	return odd
}

// checkTogether puts one gateway in front of all servers at once.
func checkTogether(ctx context.Context, at *place, peers []*peer) (r row) {
	r = row{ID: "all together", About: "every server above behind one gateway", Transport: "both", Revision: "–"}
	r.Err = func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		var entries []*entry
		var config strings.Builder
		var env []string
		for _, p := range peers {
			listed := at.listed(p.ID)
			if listed == nil {
				continue
			}
			if err := p.up(ctx); err != nil {
				return fmt.Errorf("%s: %w", p.ID, err)
			}
			defer p.down()
			e := admit(p, listed)
			entries = append(entries, e)
			config.WriteString(e.provider())
			env = append(env, p.bearerEnv()+"="+p.Bearer)
			r.Listed, r.Allowed = r.Listed+len(listed), r.Allowed+len(e.tools)
		}
		started := time.Now()
		g, err := gateway.Start(ctx, gateway.Options{Bin: at.bin, Dir: filepath.Join(at.out, "together"), Config: config.String() + export("flat", entries...), Env: env, Ready: 3 * time.Minute})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Stop()) }()
		took := time.Since(started).Round(100 * time.Millisecond)
		c, err := g.Client(ctx, "/v1/mcp", "")
		if err != nil {
			return err
		}
		defer c.Close()
		shown, err := c.List(ctx)
		if err != nil {
			return err
		}
		byName := map[string]bool{}
		for _, t := range shown {
			r.Bytes += len(t.Raw)
			byName[t.Name] = true
		}
		called := 0
		for _, e := range entries {
			for _, t := range e.tools {
				if !byName[e.flat(t)] {
					return fmt.Errorf("tools/list lacks %s", e.flat(t))
				}
			}
			result, err := c.Call(ctx, e.flat(mcpraw.Tool{Name: e.peer.Call.Tool}), string(e.peer.Call.Arguments), nil)
			if refused := (*mcpraw.RPCError)(nil); err != nil && !(e.peer.Call.Offline && errors.As(err, &refused)) {
				return fmt.Errorf("%s: %w", e.peer.ID, err)
			}
			outcome := result.Object("_meta").Object("org.ostiary/outcome")
			if want := e.peer.Call.Expect; !e.peer.Call.Offline && (outcome.Text("status") != "succeeded" || !strings.Contains(string(result["content"])+string(result["structuredContent"]), want)) {
				return fmt.Errorf("%s: call %s: %s, %.300s", e.peer.ID, e.peer.Call.Tool, result["_meta"], result["content"])
			}
			called++
		}
		if len(shown) != r.Allowed {
			return fmt.Errorf("tools/list shows %d tools, %d are exported", len(shown), r.Allowed)
		}
		r.Call = fmt.Sprintf("%d servers called, up in %s", called, took)
		_, err = g.Run(ctx, "ledger", "verify")
		return err
	}()
	return r
}
