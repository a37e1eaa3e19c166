package chat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

// Options say how the server behaves. The zero value loses nothing.
type Options struct {
	// LoseReceipts keeps back the proof that a message was sent: it is, and nobody can know.
	LoseReceipts bool
	// LegacyEvents sends events to clients of the handshake era too.
	LegacyEvents bool

	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now
}

type server struct {
	o     Options
	ext   *contract.Extensions
	rooms *rooms
}

// New makes the server, with groups of its own, and what sends its events.
func New(o Options) (*mcp.Server, *contract.Extensions, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &server{o: o, rooms: newRooms(o.Now), ext: contract.New(contract.Options{WorldEvents: true, LegacyEvents: o.LegacyEvents, Logger: o.Logger})}
	m := mcp.NewServer(&mcp.Implementation{Name: "ostiary-example-chat", Title: "Example chat", Version: "1"}, s.ext.Offer(&mcp.ServerOptions{Logger: o.Logger}))
	s.ext.Attach(m)

	group := []string{"chat:group:{group_id}"}
	no := false
	err := errors.Join(
		contract.AddTool(m, &mcp.Tool{
			Name: "read_messages", Description: "Read the messages of a group, all or those after a number.",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
		}, contract.Scopes{Observe: group}, s.read),
		contract.AddTool(m, &mcp.Tool{
			Name: "send_message", Description: "Send a message to a group.",
			Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
		}, contract.Scopes{Observe: group, Publish: group}, s.send),
	)
	mcp.AddTool(m, &mcp.Tool{
		Name: "simulate_message", Description: "Let somebody who is no agent say something in a group: an event tells of it.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, s.simulate)
	return m, s.ext, err
}

type readInput struct {
	GroupID string `json:"group_id" jsonschema:"the group, such as 42"`
	After   int    `json:"after,omitempty" jsonschema:"only messages with a higher number"`
}

type readOutput struct {
	Messages []Message `json:"messages"`
}

func (s *server) read(_ context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, readOutput, error) {
	return nil, readOutput{s.rooms.after(in.GroupID, in.After)}, nil
}

type sendInput struct {
	GroupID string `json:"group_id" jsonschema:"the group, such as 42"`
	Text    string `json:"text"`
}

type sendOutput struct {
	N int `json:"n" jsonschema:"number of the message in its group"`
}

func (s *server) send(ctx context.Context, _ *mcp.CallToolRequest, in sendInput) (*mcp.CallToolResult, sendOutput, error) {
	if in.Text == "" {
		return contract.Failed("a message without text is not sent"), sendOutput{}, nil
	}
	contract.Begun(ctx)
	m, err := s.rooms.say(in.GroupID, "agent", in.Text)
	if err != nil {
		return nil, sendOutput{}, fmt.Errorf("%w (%w)", err, contract.ErrNoEffect)
	}
	if s.o.LoseReceipts {
		return nil, sendOutput{}, errors.New("the message was handed over, and no receipt came")
	}
	return nil, sendOutput{m.N}, nil
}

type simulateInput struct {
	GroupID string `json:"group_id" jsonschema:"the group, such as 42"`
	Author  string `json:"author"`
	Text    string `json:"text"`
}

type simulateOutput struct {
	Attempted int `json:"attempted" jsonschema:"to how many clients the event was written; it may have reached none"`
}

func (s *server) simulate(ctx context.Context, _ *mcp.CallToolRequest, in simulateInput) (*mcp.CallToolResult, simulateOutput, error) {
	if err := in.event(Message{id: "draft", at: s.o.Now()}).Check(); err != nil { // before anybody has read the message
		return nil, simulateOutput{}, fmt.Errorf("%w (%w)", err, contract.ErrNoEffect)
	}
	contract.Begun(ctx)
	m, err := s.rooms.say(in.GroupID, in.Author, in.Text)
	if err != nil {
		return nil, simulateOutput{}, fmt.Errorf("%w (%w)", err, contract.ErrNoEffect)
	}
	a, err := s.ext.Emit(ctx, in.event(m))
	return nil, simulateOutput{a.Attempted}, err
}

// event tells of a message, in one line.
func (in simulateInput) event(m Message) contract.Event {
	return contract.Event{
		ID: m.id, Source: "group " + in.GroupID, Scope: "chat:group:" + in.GroupID, Kind: "message.received",
		OccurredAt: m.at, Summary: strings.Join(strings.Fields(in.Author+": "+in.Text), " "),
		Data: map[string]any{"group_id": in.GroupID, "n": m.N, "author": in.Author},
	}
}
