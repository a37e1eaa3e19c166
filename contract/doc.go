// Package contract is for authors of MCP servers on the official Go SDK: it lets a server say what its tools look at and
// change, say so when it does not know whether a call had its effect, and tell of what happens in its world.
//
// Two extensions of MCP are behind it. Both count only where client and server have offered version 1 of it to each other,
// strictly; to everybody else such a server is an ordinary one.
//
//   - org.aurorabot/tool-contract: a tool declares the scopes that it observes and publishes, and a result can say that the
//     effect of its call is unknown.
//   - org.aurorabot/world-events: the server sends events, each in a scope. A host makes facts of them.
//
// A host puts the two together. It knows of every caller how much of each scope that caller has seen. When a message
// arrives in a group, and an agent that has not read it answers the group, the call is refused before it is sent, with
// what the agent has missed.
//
// # A server
//
//	ext := contract.New(contract.Options{WorldEvents: true})
//	server := mcp.NewServer(&mcp.Implementation{Name: "chat", Version: "1"}, ext.Offer(nil))
//	ext.Attach(server)
//	err := contract.AddTool(server, &mcp.Tool{Name: "send_message"},
//		contract.Scopes{Observe: []string{"chat:group:{group_id}"}, Publish: []string{"chat:group:{group_id}"}}, send)
//	…
//	err = server.Run(ctx, ext.Transport(&mcp.StdioTransport{}))
//
// Offer declares the extensions, Attach holds the tools to the rules, Transport sees what the SDK decodes away and is the
// way out for events. Over Streamable HTTP [Extensions.Handler] takes the place of Transport; there are no events there.
//
// # What an answer says of the effect
//
// Where tool-contract was agreed, every answer of a tool says something of its effect, whether its author thinks of that
// or not:
//
//	a result                          it happened
//	a result with isError             it certainly did not happen, or it has been undone
//	[Unknown], [ErrUnknown]           nobody knows
//
// The second line is the trap: an error after a broken connection is no promise that nothing happened. So a handler marks
// the point of no return with [Begun]. After it every error, and every isError, becomes unknown by itself, unless the
// handler vouches for the opposite with [Failed] or [ErrNoEffect]. A panic is always unknown; it no longer ends the
// process. A client with whom nothing was agreed gets an ordinary tool error whose text says that the effect is unknown.
//
// # What is checked
//
// Scopes are checked when they are declared, against the tool's input schema: the error names tool and template. Events
// are checked when they are emitted, by the rules that a host applies to them. Metadata that a handler writes by hand and
// that no host would understand is taken for unknown, and logged.
//
// # What is not possible
//
// The SDK has no way to send a notification that it does not know, so events need [Extensions.Transport]. It also has no
// place for the raw settings of a client: without Transport or Handler the settings {"version": 1.0} pass for version 1,
// which costs nothing, because metadata that a client did not ask for means nothing to it. Events are sent once and are not
// acknowledged: an [Attempt] never says that one has arrived. Over Streamable HTTP there are none.
package contract
