package mcpraw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The revisions, newest first.
const (
	Modern = "2026-07-28"
	Legacy = "2025-11-25"
)

// Client is a connection with one server.
type Client struct {
	Revision     string // as negotiated
	Instructions string
	Noise        int // lines on standard output that were no messages

	conn   conn
	nextID int
	mirror map[string]map[string]string // tool → argument → header, from x-mcp-header
}

// conn carries one request and brings back its response.
type conn interface {
	// roundTrip sends a request and returns the response with its id; notifications go to heard meanwhile.
	roundTrip(ctx context.Context, r request, heard func(Message)) (Message, error)
	notify(ctx context.Context, body []byte) error
	// opened tells the connection what was negotiated.
	opened(revision string)
	close() error
}

type request struct {
	id     string // as JSON
	method string
	name   string            // of the tool, if one is called
	params map[string]string // headers Mcp-Param-…, unencoded
	body   []byte
}

// Object is a JSON object with raw values.
type Object map[string]jsontext.Value

// Message is one JSON-RPC message.
type Message struct {
	Object
	Method string
}

// RPCError is an error response.
type RPCError struct {
	Code    int
	Message string
	Raw     []byte
	Status  int // of HTTP
}

func (e *RPCError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// ParseObject reads one strict JSON object.
func ParseObject(b []byte) (Object, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if tok.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	o := Object{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		o[key] = v.Clone()
	}
	_, err = dec.ReadToken()
	return o, err
}

// ParseArray reads one strict JSON array.
func ParseArray(b []byte) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if tok.Kind() != '[' {
		return nil, errors.New("not an array")
	}
	var all []jsontext.Value
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		all = append(all, v.Clone())
	}
	return all, nil
}

// Text returns a member that is a string, "" if it is none.
func (o Object) Text(name string) string {
	if v := o[name]; v.Kind() == '"' {
		b, _ := jsontext.AppendUnquote(nil, v)
		return string(b)
	}
	return ""
}

// Object returns a member that is an object, nil if it is none.
func (o Object) Object(name string) Object {
	sub, err := ParseObject(o[name])
	if err != nil {
		return nil
	}
	return sub
}

// Quote writes a JSON string.
func Quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}

func parseMessage(b []byte) (Message, error) {
	o, err := ParseObject(b)
	if err != nil {
		return Message{}, err
	}
	if o.Text("jsonrpc") != "2.0" {
		return Message{}, errors.New("not JSON-RPC 2.0")
	}
	return Message{Object: o, Method: o.Text("method")}, nil
}

// Negotiate opens the connection in the revision asked for, or, with "", in the newest that both sides know.
func (c *Client) Negotiate(ctx context.Context, revision string) error {
	if revision == "" || revision == Modern {
		c.Revision = Modern
		c.conn.opened(Modern)
		found, err := c.Request(ctx, "server/discover", "", nil)
		if err == nil {
			versions, _ := ParseArray(found["supportedVersions"])
			if slices.ContainsFunc(versions, func(v jsontext.Value) bool { return string(v) == Quote(Modern) }) {
				c.Instructions = found.Text("instructions")
				return nil
			}
			err = fmt.Errorf("server/discover: the server knows %s", found["supportedVersions"])
		}
		if revision == Modern {
			return err
		}
		revision = Legacy
	}
	c.Revision = revision
	c.conn.opened("")
	r, err := c.Request(ctx, "initialize", `"protocolVersion":`+Quote(revision)+`,"capabilities":{},"clientInfo":{"name":"interop","version":"1"}`, nil)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	c.Revision, c.Instructions = r.Text("protocolVersion"), r.Text("instructions")
	c.conn.opened(c.Revision)
	return c.conn.notify(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

func (c *Client) modern() bool { return c.Revision == Modern }

// Request sends a request whose params have the members given, without their _meta, and returns the result. An error
// response is an [*RPCError].
func (c *Client) Request(ctx context.Context, method, members string, heard func(Message)) (Object, error) {
	return c.request(ctx, method, "", members, "", heard)
}

func (c *Client) request(ctx context.Context, method, name, members, meta string, heard func(Message)) (Object, error) {
	c.nextID++
	id := strconv.Itoa(c.nextID)
	if c.modern() {
		if meta != "" {
			meta += ","
		}
		meta += `"io.modelcontextprotocol/protocolVersion":"` + Modern + `","io.modelcontextprotocol/clientInfo":{"name":"interop","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	}
	if meta != "" {
		if members != "" {
			members += ","
		}
		members += `"_meta":{` + meta + `}`
	}
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":` + Quote(method) + `,"params":{` + members + `}}`
	if heard == nil {
		heard = func(Message) {}
	}
	r := request{id: id, method: method, name: name, body: []byte(body)}
	if name != "" {
		r.params = c.headers(name, members)
	}
	m, err := c.conn.roundTrip(ctx, r, heard)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if raw, ok := m.Object["error"]; ok {
		e := m.Object.Object("error")
		code, _ := strconv.Atoi(string(e["code"]))
		return nil, &RPCError{Code: code, Message: e.Text("message"), Raw: raw}
	}
	return ParseObject(m.Object["result"])
}

// Tool is one tool of a list.
type Tool struct {
	Name string
	Raw  []byte
	Object
}

// List reads all pages of tools/list.
func (c *Client) List(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	members := ""
	for range 1000 {
		page, err := c.Request(ctx, "tools/list", members, nil)
		if err != nil {
			return nil, err
		}
		raw, err := ParseArray(page["tools"])
		if err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		for _, r := range raw {
			o, err := ParseObject(r)
			if err != nil {
				return nil, fmt.Errorf("tools/list: a tool: %w", err)
			}
			tools = append(tools, Tool{Name: o.Text("name"), Raw: r, Object: o})
			c.annotate(o)
		}
		next, ok := page["nextCursor"]
		if !ok {
			return tools, nil
		}
		members = `"cursor":` + string(next)
	}
	return nil, errors.New("tools/list: 1000 pages and no end")
}

// annotate remembers which arguments of a tool travel in headers too. Only those at the top are looked for.
func (c *Client) annotate(tool Object) {
	for argument, schema := range tool.Object("inputSchema").Object("properties") {
		o, err := ParseObject(schema)
		if err != nil || o.Text("x-mcp-header") == "" {
			continue
		}
		if c.mirror == nil {
			c.mirror = map[string]map[string]string{}
		}
		if c.mirror[tool.Text("name")] == nil {
			c.mirror[tool.Text("name")] = map[string]string{}
		}
		c.mirror[tool.Text("name")][argument] = "Mcp-Param-" + o.Text("x-mcp-header")
	}
}

// Call calls a tool with a raw JSON object of arguments. With heard, progress is asked for.
func (c *Client) Call(ctx context.Context, name, arguments string, heard func(Message)) (Object, error) {
	meta := ""
	if heard != nil {
		meta = `"progressToken":"progress-` + strconv.Itoa(c.nextID+1) + `"`
	}
	return c.request(ctx, "tools/call", name, `"name":`+Quote(name)+`,"arguments":`+arguments, meta, heard)
}

// headers are the arguments that travel in headers too.
func (c *Client) headers(tool, members string) map[string]string {
	params, err := ParseObject([]byte("{" + members + "}"))
	if err != nil {
		return nil
	}
	h, args := map[string]string{}, params.Object("arguments")
	for argument, name := range c.mirror[tool] {
		switch v := args[argument]; v.Kind() {
		case '"':
			h[name] = args.Text(argument)
		case '0', 't', 'f':
			h[name] = string(v)
		}
	}
	return h
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.close() }
