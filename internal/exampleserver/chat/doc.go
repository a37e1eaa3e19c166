// Package chat is a small MCP server that adopts both extensions with the package contract: groups in which people and
// agents talk. It is for the scenario script, for tests, and for authors to read.
//
// It owns the groups, in memory, and three tools: read_messages and send_message, which observe and publish the scope of
// their group, and simulate_message, by which somebody who is no agent says something in a group, so that an event arrives.
// The hidden command `ostiary example-server chat` drives it through [Run]. It knows nothing of the gateway.
package chat
