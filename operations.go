package ostiary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/builtin"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/world"
)

// Operations are what the edges can ask of a gateway, running here ([Host]) or in another process on the same data
// directory. Each is one request and one answer.
type Operations interface {
	Status(ctx context.Context) (Status, error)
	Tools(ctx context.Context) ([]ToolInfo, error)
	Call(ctx context.Context, r CallRequest) (CallReply, error)
}

var _ Operations = (*Host)(nil)

// Status is the state of the gateway as operators see it.
type Status struct {
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	Since     time.Time      `json:"since"`
	Address   string         `json:"address,omitempty"` // of the inbound HTTP server; empty if there is none
	Ready     bool           `json:"ready"`
	Reason    string         `json:"reason,omitempty"` // why it is not ready
	Ledger    string         `json:"ledger"`           // "ok", or why it cannot be written
	DataDir   string         `json:"data_dir"`
	Providers []ProviderInfo `json:"providers"`
	Exports   []ExportInfo   `json:"exports"`
	Warnings  []string       `json:"warnings,omitempty"`
}

// ProviderInfo is one provider as operators see it.
type ProviderInfo = provider.Status

// ExportInfo is one export: where it is served and what it shows.
type ExportInfo struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"`
	Served bool     `json:"served"`          // false: no token is configured, so the path does not exist
	Tools  []string `json:"tools"`           // the names that clients see, in order
	Lacks  []string `json:"lacks,omitempty"` // tool ids of providers that are unavailable
	Held   []string `json:"held,omitempty"`  // names among them whose calls are refused until somebody has looked: a change, or a quarantine
}

// ToolInfo is one tool as operators see it.
type ToolInfo struct {
	ID               string            `json:"id"`
	Provider         string            `json:"provider"`
	RawName          string            `json:"raw_name"`
	Title            string            `json:"title,omitempty"`
	Description      string            `json:"description,omitempty"`
	Effect           string            `json:"effect"`
	Policy           string            `json:"policy"` // allow, ask or deny, for the operator
	Rule             string            `json:"rule"`
	Depends          bool              `json:"depends,omitempty"`   // on arguments or on what the session has read: a call may be judged otherwise
	Admission        string            `json:"admission,omitempty"` // why calls of it are refused, whatever policy says; "" if they are not
	Observe          []string          `json:"observe"`             // scopes, as templates (R4.3)
	Publish          []string          `json:"publish"`
	ToolContract     bool              `json:"tool_contract,omitempty"` // the scopes are what the server says, not the default alone
	InputSchema      JSON              `json:"input_schema,omitempty"`
	OutputSchema     JSON              `json:"output_schema,omitempty"`
	SchemaDigest     string            `json:"schema_digest"`
	DescriptorDigest string            `json:"descriptor_digest"`
	Names            map[string]string `json:"names,omitempty"` // by export
}

// JSON is raw JSON, byte for byte.
type JSON []byte

// MarshalJSON writes it as it is.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps it as it is.
func (j *JSON) UnmarshalJSON(b []byte) error {
	*j = slices.Clone(b)
	return nil
}

// CallRequest is one call of the operator's own, through the same path as any other.
type CallRequest struct {
	// Tool is a tool id, or a shorter form that means exactly one tool: package.name, package/name, or the bare name.
	Tool string `json:"tool"`
	// Arguments is a raw JSON object; empty: none.
	Arguments JSON `json:"arguments,omitempty"`
	// Frontier is what the call is based on (R5.6); nil: it does not say. An empty one says that nothing has been seen.
	Frontier call.Frontier `json:"frontier,omitzero"`
	Timeout  time.Duration `json:"timeout,omitempty"` // 0: the provider's
	// Progress takes progress lines; nil: they are not wanted. It does not cross processes.
	Progress func(progress, total, message string) `json:"-"`
}

// CallReply is what became of it.
type CallReply struct {
	Outcome call.Outcome `json:"outcome"`
	Message string       `json:"message,omitempty"` // words on the outcome, when it is not a plain success
	Result  JSON         `json:"result,omitempty"`  // the provider's result, byte for byte
	Text    string       `json:"text,omitempty"`    // its normalised text (R3.6)
	Error   *RPCError    `json:"error,omitempty"`   // the provider's JSON-RPC error

	Frontier call.Frontier `json:"frontier,omitzero"` // what has been seen of the world after the call; nil if none was stated
	Missed   []call.Commit `json:"missed,omitempty"`  // what a stale frontier does not know, oldest first, as much as fits
}

// RPCError is a JSON-RPC error that a provider answered with.
type RPCError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    JSON   `json:"data,omitempty"`
}

// Principals that no token stands for. Their colon keeps them apart from those that a configuration can name.
var (
	operator  = call.Principal{ID: "local:operator"} // the gateway's own command line and admin API
	overStdio = call.Principal{ID: "local:stdio"}    // whoever started ostiary stdio
)

// Status tells the state of everything.
func (h *Host) Status(context.Context) (Status, error) {
	s := Status{Version: Version, PID: h.pid, Since: h.since, DataDir: h.o.DataDir, Ledger: "ok", Address: h.Addr()}
	s.Ready, s.Reason = h.Ready()
	if err := h.store.Healthy(); err != nil {
		s.Ledger = err.Error()
	}
	for _, p := range h.providers.Providers() {
		st := p.Status()
		st.Events = h.eventStats(st.Package)
		if c := p.Catalog(); c != nil {
			st.Held = h.heldIn(c)
		}
		s.Providers = append(s.Providers, st)
	}
	h.mu.Lock()
	s.Exports = slices.Clone(h.exports)
	h.mu.Unlock()
	for i := range s.Exports {
		s.Exports[i].Held = h.heldOf(&s.Exports[i])
	}
	for _, w := range h.o.Config.Warnings {
		s.Warnings = append(s.Warnings, w.Error())
	}
	s.Warnings = append(s.Warnings, h.waiting()...)
	if n := h.gate.Late(); n > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d outcomes wait in memory until the ledger can be written", n))
	}
	return s, nil
}

// heldOf are the tools of an export that clients see and cannot use until somebody has looked.
func (h *Host) heldOf(info *ExportInfo) (held []string) {
	e, _ := h.o.Config.Export(info.Name)
	for _, t := range e.Tools {
		if tool, ok := h.registry.Tool(t.ID); ok && slices.Contains(info.Tools, t.Name) && h.admitted.book.Check(tool.Descriptor) != nil {
			held = append(held, t.Name)
		}
	}
	return held
}

// Tools lists every tool that calls could go to, in configuration order; those that are built in come last, if an export may
// read the world at all.
func (h *Host) Tools(context.Context) ([]ToolInfo, error) {
	names := map[call.ToolID]map[string]string{}
	for _, e := range h.o.Config.Exports {
		for _, t := range e.Tools {
			if names[t.ID] == nil {
				names[t.ID] = map[string]string{}
			}
			names[t.ID][e.Name] = t.Name
		}
	}
	var out []ToolInfo
	catalogs := []*provider.Catalog{}
	for _, p := range h.providers.Providers() {
		if c := p.Catalog(); c != nil {
			catalogs = append(catalogs, c)
		}
	}
	if slices.ContainsFunc(h.o.Config.Exports, func(e config.Export) bool { return e.World != nil }) {
		catalogs = append(catalogs, h.builtIns.catalog)
	}
	for _, c := range catalogs {
		for _, t := range c.Tools {
			if t.ID == builtin.Read {
				continue // not a tool to anybody
			}
			d, depends := h.policy.Outlook(operator, "", t.Descriptor)
			waits := ""
			if err := h.admitted.book.Check(t.Descriptor); err != nil {
				waits = err.Error()
			}
			out = append(out, ToolInfo{Admission: waits, ID: string(t.ID), Provider: t.Package, RawName: t.RawName, Title: t.Title, Description: t.Description,
				Effect: t.Effect.String(), Policy: d.Verdict.String(), Rule: d.Rule, Depends: depends, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
				Observe: templatesOf(t.Scopes.Observe), Publish: templatesOf(t.Scopes.Publish), ToolContract: c.Negotiated.ToolContract,
				SchemaDigest: t.SchemaDigest.String(), DescriptorDigest: t.DescriptorDigest.String(), Names: names[t.ID]})
		}
	}
	return out, nil
}

func templatesOf(list []world.Template) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.String()
	}
	return out
}

// ErrAmbiguous says that a short name means no tool, or more than one.
var ErrAmbiguous = errors.New("no such tool")

// Resolve finds the tool id that a name means: the id itself, or package.name, package/name, package__name, or the bare name
// where only one tool has it.
func (h *Host) Resolve(name string) (call.ToolID, error) {
	if _, ok := h.registry.Tool(call.ToolID(name)); ok {
		return call.ToolID(name), nil
	}
	var found []string
	for _, p := range h.providers.Providers() {
		c := p.Catalog()
		if c == nil {
			continue
		}
		for _, t := range c.Tools {
			for _, form := range []string{t.Name, t.RawName, t.Package + "." + t.Name, t.Package + "/" + t.Name, t.Package + "__" + t.Name} {
				if form == name {
					found = append(found, string(t.ID))
					break
				}
			}
		}
	}
	switch len(found) {
	case 1:
		return call.ToolID(found[0]), nil
	case 0:
		return "", fmt.Errorf("%w: %q; ostiary tools lists what there is", ErrAmbiguous, name)
	default:
		return "", fmt.Errorf("%w: %q means %s; give the whole tool id", ErrAmbiguous, name, strings.Join(found, " and "))
	}
}

var errNotObject = errors.New("expected an object without duplicate keys, in UTF-8")

func checkArguments(id call.ToolID, arguments []byte) error {
	if len(arguments) == 0 {
		return nil
	}
	if err := content.CheckValue(arguments, content.FrameLimits{}); err != nil || !content.IsObject(arguments) {
		return fmt.Errorf("call %s: the arguments are not one JSON object: %w", id, errors.Join(err, errNotObject))
	}
	return nil
}

// ownApproval is what there is to do about a call of the operator's own that needs approval.
const ownApproval = "Nobody agrees to a call of their own, so the operator's own cannot pass: let the policy allow it (approval = \"never\" for the tool), or have another principal make it."

// Call places a call for the operator, through the path.
func (h *Host) Call(ctx context.Context, r CallRequest) (CallReply, error) {
	id, err := h.Resolve(r.Tool)
	if err != nil {
		return CallReply{}, err
	}
	if err := checkArguments(id, r.Arguments); err != nil {
		return CallReply{}, err
	}
	if err := world.CheckFrontier(r.Frontier); err != nil {
		return CallReply{}, fmt.Errorf("call %s: %w: %w", id, ErrInvalidQuery, err)
	}
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	req := call.Request{Principal: operator, Tool: id, Arguments: r.Arguments, Frontier: r.Frontier}
	if r.Progress != nil {
		req.Progress = func(p call.Progress) { r.Progress(string(p.Progress), string(p.Total), p.Message) }
	}
	reply := h.gate.Call(ctx, req)
	out := CallReply{Outcome: reply.Outcome, Message: reply.Outcome.Message, Result: reply.Result, Frontier: reply.Frontier, Missed: reply.Missed}
	if out.Outcome.Code == call.CodeApprovalPending { // it is the operator who agrees, and nobody does to a call of their own
		out.Message = strings.Replace(out.Message, call.CodeApprovalPending.Info().Advice, ownApproval, 1)
		out.Outcome.Message = out.Message
	}
	if reply.Error != nil {
		out.Error = &RPCError{Code: reply.Error.Code, Message: reply.Error.Message, Data: reply.Error.Data}
	}
	if reply.Result != nil {
		if out.Text, err = content.NormalizedText(reply.Result); err != nil {
			return out, fmt.Errorf("text of the result of %s: %w", id, err)
		}
	}
	return out, nil
}

// exportServed says whether anyone could show a credential for an export.
func exportServed(c *config.Config, name string) bool {
	return slices.ContainsFunc(c.Principals, func(p config.Principal) bool {
		_, ok := p.Token()
		return ok && (len(p.Exports) == 0 || slices.Contains(p.Exports, name))
	})
}
