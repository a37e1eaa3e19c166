package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/internal/world"
)

// Scopes are the parts of the world that a tool looks at and that it changes, as templates such as chat:group:{group_id}.
// A placeholder is the name of a top-level property of the tool's input schema, whose argument is text or an integer. A
// list that is nil keeps the default: the scope that stands for the whole server.
type Scopes struct {
	// Observe: a call is refused if the world has moved on here since its caller looked.
	Observe []string
	// Publish: a call that succeeds, or may have, moves the world on here.
	Publish []string
}

// Declare writes the scopes into the definition of a tool, which must have its input schema already, and checks them at
// once. The error names the tool and the template. To a client that knows nothing of tool-contract they mean nothing, so
// they are listed to all: a definition that depends on who asks would look like one that has been tampered with.
func Declare(t *mcp.Tool, s Scopes) error {
	fail := func(err error) error { return fmt.Errorf("declare scopes of tool %s: %w", t.Name, err) }
	if s.Observe == nil && s.Publish == nil {
		return fail(errors.New("there are none"))
	}
	if _, ok := t.Meta[ToolContract]; ok {
		return fail(errors.New("they are declared already"))
	}
	if t.InputSchema == nil {
		return fail(errors.New("it has no input schema yet: set it, or use contract.AddTool"))
	}
	schema, err := json.Marshal(t.InputSchema) // as the SDK will
	if err != nil {
		return fail(fmt.Errorf("input schema: %w", err))
	}
	if schema[0] != '{' {
		return fail(errors.New("the input schema is not an object"))
	}
	said := map[string]any{}
	for _, list := range []struct {
		name      string
		templates []string
	}{{"observe", s.Observe}, {"publish", s.Publish}} {
		if list.templates == nil {
			continue
		}
		if len(list.templates) == 0 {
			return fail(fmt.Errorf("%s: the list is empty: leave it nil for the default", list.name))
		}
		if _, err := world.ParseTemplates(list.templates, schema); err != nil {
			return fail(fmt.Errorf("%s: %w", list.name, err))
		}
		said[list.name] = slices.Clone(list.templates)
	}
	meta := mcp.Meta{}
	for k, v := range t.Meta {
		meta[k] = v
	}
	meta[ToolContract] = said
	t.Meta = meta
	return nil
}

// AddTool is [mcp.AddTool] for a tool with scopes: it takes the input schema from In where the tool has none, declares the
// scopes and adds the tool. In its handler [Unknown] and [Failed] work whatever Out is.
func AddTool[In, Out any](s *mcp.Server, t *mcp.Tool, scopes Scopes, h mcp.ToolHandlerFor[In, Out]) error {
	t = new(*t)
	if t.InputSchema == nil {
		schema, err := jsonschema.For[In](nil)
		if err != nil {
			return fmt.Errorf("input schema of tool %s: %w", t.Name, err)
		}
		t.InputSchema = schema
	}
	if err := Declare(t, scopes); err != nil {
		return err
	}
	mcp.AddTool(s, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		r, out, err := h(ctx, req, in)
		if err == nil && r != nil {
			// The SDK would hold the empty Out against the output schema.
			if said := r.GetError(); errors.Is(said, ErrUnknown) || errors.Is(said, ErrNoEffect) {
				err = said
			}
		}
		return r, out, err
	})
	return nil
}
