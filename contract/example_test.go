package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

type message struct {
	GroupID string `json:"group_id"`
	Text    string `json:"text"`
}

// A server with one tool that looks at a group and changes it.
func Example() {
	ext := contract.New(contract.Options{WorldEvents: true})
	server := mcp.NewServer(&mcp.Implementation{Name: "chat", Version: "1"}, ext.Offer(nil))
	ext.Attach(server)

	group := []string{"chat:group:{group_id}"}
	err := contract.AddTool(server, &mcp.Tool{Name: "send_message", Description: "Send a message to a group."},
		contract.Scopes{Observe: group, Publish: group},
		func(ctx context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
			if in.Text == "" {
				return contract.Failed("there is no text"), nil, nil
			}
			contract.Begun(ctx) // from here on nobody can say that nothing happened …
			if err := post(in); err != nil {
				return nil, nil, fmt.Errorf("post to %s: %w", in.GroupID, err) // … so this is not a failure
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sent"}}}, nil, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}

	// A server of its own would now call server.Run(ctx, ext.Transport(&mcp.StdioTransport{})).
	cs := exampleClient(ext, server, contract.ToolContract)
	defer cs.Close()
	for _, text := range []string{"hello", "", "flaky"} {
		r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "send_message", Arguments: message{"42", text}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.IsError, r.Meta[contract.ToolContract], r.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// false <nil> sent
	// true <nil> there is no text
	// true map[status:unknown] post to 42: connection reset
}

func post(m message) error {
	if m.Text == "flaky" {
		return errors.New("connection reset")
	}
	return nil
}

// To a client that knows nothing of the contract the same server says it in words.
func ExampleUnknown() {
	ext := contract.New(contract.Options{})
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, ext.Offer(nil))
	ext.Attach(server)
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return contract.Unknown("the bank did not answer in time"), nil, nil
	})
	for _, offers := range [][]string{{contract.ToolContract}, nil} {
		cs := exampleClient(ext, server, offers...)
		r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "pay"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(offers), "offered:", r.IsError, r.Meta[contract.ToolContract])
		for _, c := range r.Content {
			fmt.Println(" ", c.(*mcp.TextContent).Text)
		}
		cs.Close()
	}
	// Output:
	// 1 offered: true map[status:unknown]
	//   the bank did not answer in time
	// 0 offered: true <nil>
	//   the bank did not answer in time
	//   It is unknown whether this call had an effect. Look before doing it again.
}

// A template that the input schema cannot fill is found when the server is made.
func ExampleDeclare() {
	tool := &mcp.Tool{Name: "read_messages", InputSchema: json.RawMessage(`{"type":"object","properties":{"group_id":{"type":"string"}}}`)}
	fmt.Println(contract.Declare(tool, contract.Scopes{Observe: []string{"chat:group:{group}"}}))
	fmt.Println(contract.Declare(tool, contract.Scopes{Observe: []string{"chat:group:{group_id}"}}), tool.Meta)
	// Output:
	// declare scopes of tool read_messages: observe: scope template "chat:group:{group}": the input schema has no property group at its top level
	// <nil> map[org.aurorabot/tool-contract:map[observe:[chat:group:{group_id}]]]
}

// An event reaches those who agreed to events. The attempt says to how many sessions it was written, and no more.
func ExampleExtensions_Emit() {
	ext := contract.New(contract.Options{WorldEvents: true})
	server := mcp.NewServer(&mcp.Implementation{Name: "chat", Version: "1"}, ext.Offer(nil))
	defer exampleClient(ext, server, contract.WorldEvents).Close()
	defer exampleClient(ext, server).Close()
	event := contract.Event{
		ID: "msg-1001", Source: "group 42", Scope: "chat:group:42", Kind: "message.received",
		OccurredAt: time.Date(2026, 8, 1, 9, 30, 0, 0, time.UTC), Summary: "Ann asks when the meeting is.",
		Data: map[string]string{"author": "ann"},
	}
	attempt, err := ext.Emit(context.Background(), event)
	fmt.Printf("%+v %v\n", attempt, err)
	event.Scope = "chat:group:forty two"
	attempt, err = ext.Emit(context.Background(), event)
	fmt.Printf("%+v %v\n", attempt, err)
	// Output:
	// {Attempted:1 Passed:1} <nil>
	// {Attempted:0 Passed:0} event "msg-1001": scope "chat:group:forty two": ' ' cannot stand in a segment
}

// exampleClient connects a client that offers the extensions named, as a host would.
func exampleClient(ext *contract.Extensions, server *mcp.Server, extensions ...string) *mcp.ClientSession {
	there, here := mcp.NewInMemoryTransports()
	_, err := server.Connect(context.Background(), ext.Transport(there), nil)
	must(err)
	caps := &mcp.ClientCapabilities{}
	for _, name := range extensions {
		caps.AddExtension(name, map[string]any{"version": 1})
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{Capabilities: caps})
	cs, err := client.Connect(context.Background(), here, nil)
	must(err)
	return cs
}
