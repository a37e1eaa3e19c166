package config

import (
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/policy"
)

// valueType is what a key's value must be.
type valueType uint8

const (
	typeString valueType = iota
	typeBool
	typeInteger
	typeSeconds // a number, decimals allowed
	typeStrings
	typeStringTable
	typeTools // strings, or { name, as } for an alias
)

var typeNames = [...]string{"string", "boolean", "integer", "number", "array of strings", "table of strings", "array of tools"}

func (t valueType) String() string { return typeNames[t] }

// Key describes one key of the file: the reader, the JSON Schema and docs/CONFIG.md all come from it.
type Key struct {
	Name     string
	Type     valueType
	Default  string   // as TOML; "" where there is none
	Note     string   // in place of Default where the default is not a plain value
	Enum     []string // the only values
	Min, Max float64  // of numbers, both included
	Unit     string
	Required bool
	Only     string // the one transport that the key belongs to; "" for all
	Meaning  string
	Needs    string // the requirement behind it

	// secretish values may hold a secret in spite of all warnings, so they are never shown.
	secretish bool
}

// Section describes one table of the file. Words in upper case in its name stand for a name of the user's.
type Section struct {
	Name    string
	Meaning string
	Keys    []Key
}

// The sections, in the order of the documentation.
var (
	serverSection = Section{"server", "The inbound side: where agents connect.", []Key{
		{Name: "listen", Type: typeString, Default: `"127.0.0.1:7411"`, Meaning: "Address and port. Other than loopback must be meant: there is no TLS here.", Needs: "R10.5"},
		{Name: "token_env", Type: typeString, Note: "none: no token", Meaning: "Environment variable with the bearer token of the principal `default`, who may use every export. Without any token there is no MCP route at all.", Needs: "R10.1"},
		{Name: "data", Type: typeString, Note: "`$XDG_STATE_HOME/ostiary`", Meaning: "Data directory (ledger, keys). Relative to the file. `--data` wins."},
		{Name: "allowed_hosts", Type: typeStrings, Default: `[]`, Meaning: "Host names, without port, under which the gateway may be addressed, beside the loopback names.", Needs: "R10.5"},
		{Name: "allowed_origins", Type: typeStrings, Default: `[]`, Meaning: "Origins of browsers accepted, such as `https://agent.example`. A request without an Origin is no browser's.", Needs: "R10.5"},
		{Name: "max_body_bytes", Type: typeInteger, Default: `4194304`, Min: 1024, Max: 1 << 30, Unit: "bytes", Meaning: "Largest request body."},
		{Name: "max_concurrent", Type: typeInteger, Default: `256`, Min: 1, Max: 100_000, Unit: "calls", Meaning: "Calls in work at a time, over all callers; more are refused as `overloaded`."},
		{Name: "max_sessions", Type: typeInteger, Default: `1024`, Min: 1, Max: 1_000_000, Unit: "sessions", Meaning: "Protocol sessions of handshake-era clients at a time.", Needs: "R10.2"},
		{Name: "session_idle_seconds", Type: typeSeconds, Default: `1800`, Min: 1, Max: 604_800, Unit: "seconds", Meaning: "A protocol session that was silent for so long is ended.", Needs: "R10.2"},
		{Name: "drain_seconds", Type: typeSeconds, Default: `20`, Min: 0, Max: 3600, Unit: "seconds", Meaning: "How long a stop waits for calls in work."},
		{Name: "instructions", Type: typeString, Default: `""`, Meaning: "Instructions shown to every client; never those of a provider.", Needs: "R6.7"},
	}}
	principalSection = Section{"principal.NAME", "A caller with a token of its own.", []Key{
		{Name: "token_env", Type: typeString, Required: true, Meaning: "Environment variable with the bearer token: at least 16 visible characters.", Needs: "R10.1"},
		{Name: "exports", Type: typeStrings, Required: true, Meaning: "The exports that this caller may use.", Needs: "R10.8"},
	}}
	providerSection = Section{"provider.PACKAGE", "One external MCP server. The table's name is the package; one with dots is quoted: `[provider.\"org.example.files\"]`.", []Key{
		{Name: "transport", Type: typeString, Required: true, Enum: []string{transportStdio, transportHTTP, transportSandbox}, Meaning: "How the server is reached. `sandbox_stdio` is refused: it is not available yet.", Needs: "R6.1"},
		{Name: "command", Type: typeString, Only: transportStdio, Meaning: "The program. It never passes through a shell. With a slash in it, relative to the file; else found in PATH.", Needs: "R1.12"},
		{Name: "args", Type: typeStrings, Default: `[]`, Only: transportStdio, Meaning: "Its arguments.", Needs: "R1.12"},
		{Name: "dir", Type: typeString, Note: "the gateway's own", Only: transportStdio, Meaning: "Its working directory, relative to the file.", Needs: "R1.12"},
		{Name: "env", Type: typeStringTable, Default: `{}`, Only: transportStdio, Meaning: "Environment variables with their values, beside a small safe base. No secrets: use `env_from`.", Needs: "R1.12", secretish: true},
		{Name: "env_from", Type: typeStrings, Default: `[]`, Only: transportStdio, Meaning: "Names of environment variables to hand on. Each must be set.", Needs: "R1.12"},
		{Name: "url", Type: typeString, Only: transportHTTP, Meaning: "Address of the server: https, or http for loopback alone; no userinfo, no fragment.", Needs: "R1.9"},
		{Name: "headers", Type: typeStringTable, Default: `{}`, Only: transportHTTP, Meaning: "Request headers to add, but none that MCP manages. No secrets: use `credential`.", Needs: "R1.10", secretish: true},
		{Name: "credential", Type: typeString, Note: "none", Only: transportHTTP, Meaning: "Where the bearer token for the server is: the name of a vault entry, or `env:NAME` for an environment variable.", Needs: "R6.1, R12.3"},
		{Name: "allow_redirects", Type: typeBool, Default: `false`, Only: transportHTTP, Meaning: "Follow redirects, each checked like the address itself; credentials stay with their origin.", Needs: "R1.9"},
		{Name: "allow_private_network", Type: typeBool, Default: `false`, Only: transportHTTP, Meaning: "The host may resolve to private addresses.", Needs: "R6.4"},
		{Name: "protocol", Type: typeString, Default: `"auto"`, Enum: []string{"auto", "2026-07-28", "2025-11-25"}, Meaning: "Revision of MCP: the newest that both sides know, or exactly this one.", Needs: "R1.2"},
		{Name: "trust_tier", Type: typeString, Required: true, Enum: trustTiers, Meaning: "How far the provider is trusted. BLOCKED: kept, never invoked.", Needs: "R6.2"},
		{Name: "allowed_tools", Type: typeTools, Required: true, Meaning: "The only tools that are listed or callable, by the server's own names; `{ name = \"repo/search\", as = \"repo_search\" }` gives an alias to one whose name does not fit. There is no \"all\".", Needs: "R6.1"},
		{Name: "content", Type: typeStrings, Note: "all kinds", Enum: contentKinds, Meaning: "Content kinds that a result may hold.", Needs: "R3.7"},
		{Name: "required", Type: typeBool, Default: `true`, Meaning: "false: if it does not start, it is reported UNAVAILABLE and the gateway starts without it, as it does without a tool of an export that the server does not offer.", Needs: "R2.4"},
		{Name: "admission", Type: typeString, Note: "`explicit`; `first_use` for CONTROLLED_LOCAL", Enum: []string{string(AdmitExplicit), string(AdmitFirstUse)}, Meaning: "Who admits the tools as they were first found: an operator (`ostiary admit`), or the first start, but for what screening finds something in. A change always waits.", Needs: "R6.6"},
		{Name: "restart", Type: typeString, Default: `"never"`, Enum: []string{string(RestartNever), string(RestartOnFailure)}, Meaning: "What happens when the connection ends. `on-failure` makes a new generation, never a replay.", Needs: "R2.7"},
		{Name: "events", Type: typeString, Default: `"off"`, Enum: []string{string(EventsOff), string(EventsWorld), string(EventsLegacy)}, Meaning: "Whether what the server says has happened becomes facts of the world: by the extension world-events (2026-07-28), or, from a server of an older revision, by log messages of the logger `aurora/event`. stdio alone.", Needs: "R5.1, R5.4, R5.5"},
		{Name: "event_scopes", Type: typeStrings, Note: "every scope but those that stand for other providers", Only: transportStdio, Meaning: "The scopes that its events may speak of; `*` stands for any text: `qq:*`.", Needs: "R5.2"},
		{Name: "null_arguments", Type: typeString, Default: `"strict"`, Enum: []string{"strict", "absent"}, Meaning: "absent: an optional argument that is null is checked as if it had been left out, as many models mean it. It is sent as it came.", Needs: "R6.8"},
		{Name: "interaction", Type: typeString, Default: `"refuse"`, Enum: []string{string(InteractionRefuse), string(InteractionForward)}, Meaning: "Whether a tool's question is passed to the calling client.", Needs: "R3.8"},
		{Name: "ledger", Type: typeString, Default: `"durable"`, Enum: []string{ledgerDurable, ledgerRelaxed}, Meaning: "`relaxed`: READ_ONLY calls go out before their intent is on disk. Calls with effects never do.", Needs: "R3.5"},
		{Name: "timeout_seconds", Type: typeSeconds, Default: `30`, Min: 0.1, Max: 3600, Unit: "seconds", Meaning: "The whole start: connect, handshake, all pages of tools.", Needs: "R2.1"},
		{Name: "relist_seconds", Type: typeSeconds, Default: `60`, Min: 0, Max: 86_400, Unit: "seconds", Meaning: "How old the tool list may be when a call is let through; an older one is read again first, for a server may change its tools without saying so. 0: before every call. One that cannot be read refuses the call.", Needs: "R6.6, A-04"},
		{Name: "call_timeout_seconds", Type: typeSeconds, Default: `60`, Min: 0.1, Max: 86_400, Unit: "seconds", Meaning: "One call, with or without progress.", Needs: "R1.11"},
		{Name: "close_seconds", Type: typeSeconds, Default: `5`, Min: 0.1, Max: 300, Unit: "seconds", Meaning: "Closing: end of input, TERM and KILL together.", Needs: "R1.12"},
		{Name: "max_message_bytes", Type: typeInteger, Default: `16777216`, Min: 1024, Max: 1 << 30, Unit: "bytes", Meaning: "Largest message from the server.", Needs: "R1.11"},
		{Name: "max_pages", Type: typeInteger, Default: `1024`, Min: 1, Max: 100_000, Unit: "pages", Meaning: "Pages of one list.", Needs: "R1.11"},
		{Name: "max_tools", Type: typeInteger, Default: `10000`, Min: 1, Max: 1_000_000, Unit: "tools", Meaning: "Tools of the server, allowed or not.", Needs: "R1.11"},
		{Name: "max_response_header_bytes", Type: typeInteger, Default: `65536`, Min: 1024, Max: 16 << 20, Unit: "bytes", Only: transportHTTP, Meaning: "Header of one HTTP response.", Needs: "R1.11"},
		{Name: "max_concurrent", Type: typeInteger, Default: `256`, Min: 1, Max: 100_000, Unit: "calls", Meaning: "Calls of this provider in work at a time.", Needs: "R1.11"},
	}}
	policySection = Section{"provider.PACKAGE.policy", "The provider's policy: exactly one each.", []Key{
		{Name: "available", Type: typeBool, Required: true, Meaning: "Whether the allowed tools may be used at all.", Needs: "R7.1"},
		{Name: "approval", Type: typeString, Note: "by effect class: EXTERNAL_SIDE_EFFECT and SENSITIVE_READ need it", Enum: approvals, Meaning: "Whether a call needs someone's approval. `never` is the explicit rule that lets a tool with outside effects go without.", Needs: "R7.1, R7.2"},
		{Name: "frontier", Type: typeString, Note: "that of `[world]`", Enum: frontiers, Meaning: "Whether a call must state the frontier that it is based on. One that is stated is always held against the world.", Needs: "R5.6"},
		{Name: "elicit", Type: typeString, Note: "that of `[approval]`", Enum: elicits, Meaning: "Whether calls of the provider's tools are put to the person behind the client, as in `[approval]`.", Needs: "R7.6"},
	}}
	toolSection = Section{"provider.PACKAGE.policy.tools.TOOL", "What differs for one tool, by its raw name or alias. It may only narrow the policy; the one thing it may drop is the approval of a tool that it declares READ_ONLY.", []Key{
		{Name: "effect", Type: typeString, Default: `"EXTERNAL_SIDE_EFFECT"`, Enum: call.EffectClasses(), Meaning: "What a call may do to the world. UNSUPPORTED_EFFECT cannot be invoked.", Needs: "R7.2"},
		{Name: "approval", Type: typeString, Note: "that of the policy", Enum: approvals, Meaning: "As in the policy.", Needs: "R7.1"},
		{Name: "frontier", Type: typeString, Note: "that of the policy", Enum: frontiers, Meaning: "As in the policy.", Needs: "R5.6"},
		{Name: "labels", Type: typeStrings, Note: "by effect class and trust tier", Enum: policy.LabelNames(), Meaning: "What calls of the tool do to the flow of information. A session that has read both what is private and what strangers wrote must ask before a call that reaches others.", Needs: "A-27"},
		{Name: "available", Type: typeBool, Note: "that of the policy", Meaning: "false takes the tool out of use.", Needs: "R7.1"},
		{Name: "schema_digest", Type: typeString, Note: "none", Meaning: "`sha256:` and 64 hexadecimal digits: the digest that the tool's input schema must have.", Needs: "R6.6"},
	}}
	firewallSection     = Section{"provider.PACKAGE.firewall", "What findings do in results and arguments: one key a class of findings, from `accept`, `redact`, `ask`, `quarantine` and `reject`. The codes of each class, and what they do by default, are in docs/FIREWALL.md.", firewallKeys(true)}
	firewallToolSection = Section{"provider.PACKAGE.firewall.tools.TOOL", "What differs for one tool, by its raw name or alias; the keys it does not have hold as in the provider's table.", firewallKeys(false)}
	exportSection       = Section{"export.NAME", "A set of tools shown as one MCP server.", []Key{
		{Name: "path", Type: typeString, Note: "`/v1/mcp` for the export `default`, else `/v1/mcp/NAME`", Meaning: "Its HTTP path.", Needs: "R10.8"},
		{Name: "tools", Type: typeStrings, Required: true, Meaning: "Tool ids, `aur.mcp.PACKAGE.NAME`, and of the built-in ones `aur.world.head` and `aur.world.delta`. Nothing else is shown.", Needs: "R10.3, R2.5"},
		{Name: "naming", Type: typeString, Default: `"id"`, Enum: []string{string(NamingID), string(NamingFlat), string(NamingRaw)}, Meaning: "Names towards clients: the tool id; `package__tool` of at most 64 characters, with `_` for the dots of a package; or the tool's own name (one provider only). The built-in tools are `world__head` and `world_head` then.", Needs: "R10.7"},
		{Name: "world", Type: typeStrings, Note: "none: nothing of the world", Meaning: "Scopes of the world that clients of the export may read, by the built-in tools, as resources `ostiary://world/SCOPE`, and in what a stale call has missed: a scope, all scopes below one (`qq:*`), or `*` for every scope.", Needs: "R5.7"},
		{Name: "instructions", Type: typeString, Note: "those of the server", Meaning: "Instructions shown to clients of this export.", Needs: "R6.7"},
	}}
	ruleSection = Section{"rule.NAME", "A rule over calls, beside the providers' policies. A deny rule that matches denies, and so does any rule that cannot be evaluated; then an ask rule that matches asks; an allow rule drops the approval that an effect class asks for, never one that a policy requires. The order in the file does not matter.", []Key{
		{Name: "effect", Type: typeString, Required: true, Enum: []string{"allow", "ask", "deny"}, Meaning: "What the rule does when it matches.", Needs: "R7.2"},
		{Name: "when", Type: typeString, Note: "always", Meaning: "An expression in CEL over `principal.id`, `export`, `provider.package`, `provider.trust`, `tool.id`, `tool.name`, `tool.effect`, `tool.labels`, `session.taints` and `args`; it has the type bool, and a bounded cost.", Needs: "R7.3, F-56"},
		{Name: "tools", Type: typeStrings, Note: "every tool", Meaning: "Patterns of tool ids; `*` stands for any text within a part of the name.", Needs: "R7.1"},
		{Name: "principals", Type: typeStrings, Note: "every principal", Meaning: "Patterns of principals. `local:operator` is the command line, `local:stdio` is who started `ostiary stdio`.", Needs: "R7.1"},
		{Name: "classes", Type: typeStrings, Note: "every class", Enum: call.EffectClasses(), Meaning: "The effect classes that the rule speaks of. A rule that allows must name those whose approval it drops.", Needs: "R7.2"},
		{Name: "flows", Type: typeBool, Default: `false`, Meaning: "true makes an allow rule one about flows: it drops what a session has to ask for because of what it has read, and nothing else.", Needs: "A-27"},
		{Name: "reason", Type: typeString, Default: `""`, Meaning: "Words for people, one line.", Needs: "R7.3"},
	}}
	approvalSection = Section{"approval", "Calls that wait for someone to agree.", []Key{
		{Name: "hold_seconds", Type: typeSeconds, Default: `30`, Min: 0, Max: 600, Unit: "seconds", Meaning: "How long a call is held open for its approval before it ends as `approval_pending`.", Needs: "R7.4"},
		{Name: "expiry_seconds", Type: typeSeconds, Default: `3600`, Min: 10, Max: 604_800, Unit: "seconds", Meaning: "How long a request waits for a decision, and how long a grant for one call can be used.", Needs: "R7.4"},
		{Name: "session_seconds", Type: typeSeconds, Default: `28800`, Min: 60, Max: 2_592_000, Unit: "seconds", Meaning: "How long a grant for a session holds, if the session lives so long.", Needs: "R7.4, A-31"},
		{Name: "elicit", Type: typeString, Default: `"off"`, Enum: elicits, Meaning: "`on`: a call that waits is put to the client that makes it, if that client can ask its user (elicitation): a form in the gateway's own words, with the tool, its effect and the arguments. Who answers is on record as `elicitation:PRINCIPAL`, and can agree once, never for a session and never to a held result. Switching it on means that the one who wants the call may be the one who agrees to it, and that the client is trusted to show the form to a person instead of answering it by itself: it is for clients at which somebody sits who may decide.", Needs: "R7.6, F-53"},
	}}
	budgetPrincipalSection = Section{"budget.principal", "What one principal may do in a while, over all its sessions. Calls beyond it are refused as `budget_exceeded`, and are not counted.", budgetKeys()}
	budgetSessionSection   = Section{"budget.session", "What one session may do in a while.", budgetKeys()}
	evidenceSection        = Section{"evidence", "What the firewall held, kept encrypted to the vault's key.", []Key{
		{Name: "retention_days", Type: typeInteger, Default: `30`, Min: 1, Max: 3650, Unit: "days", Meaning: "How long an item is kept. What remains of it then is its record in the ledger.", Needs: "R8.1"},
		{Name: "max_bytes", Type: typeInteger, Default: `1073741824`, Min: 1 << 20, Max: 1 << 40, Unit: "bytes", Meaning: "All payloads together, of which one provider has half at most, and its events an eighth. When that is reached, items are kept without their payload.", Needs: "R8.1"},
		{Name: "max_payload_bytes", Type: typeInteger, Default: `8388608`, Min: 1024, Max: 64 << 20, Unit: "bytes", Meaning: "One payload. A larger one is not kept, and the item says so.", Needs: "R8.1"},
	}}
	vaultSection = Section{"vault", "Where the key of the vault is looked for: the environment variable, then the key file, then the keyring. The first that has a key is used; a key there that is not fit is an error.", []Key{
		{Name: "key_env", Type: typeString, Default: `"OSTIARY_VAULT_KEY"`, Meaning: "Environment variable with the key, or with several, the newest first.", Needs: "R12.3"},
		{Name: "key_file", Type: typeString, Note: "`vault.key` in the data directory", Meaning: "The key file, mode 0600. Relative to the file.", Needs: "R12.3"},
		{Name: "keyring", Type: typeBool, Default: `true`, Meaning: "Whether the keyring of the operating system is one of the places.", Needs: "R12.3"},
	}}
	worldSection = Section{"world", "The journal of facts that calls are based on.", []Key{
		{Name: "frontier", Type: typeString, Default: `"optional"`, Enum: frontiers, Meaning: "Whether calls must state the frontier that they are based on, where a provider's policy does not say. A call that must and does not is refused as `frontier_required`.", Needs: "R5.6"},
	}}
	ledgerSection = Section{"ledger", "The record of all that happens.", []Key{
		{Name: "relaxed_delay_ms", Type: typeInteger, Default: `50`, Min: 1, Max: 10_000, Unit: "milliseconds", Meaning: "How long records of a `relaxed` provider may wait to be written together.", Needs: "R3.5"},
		{Name: "keep_days", Type: typeInteger, Default: `0`, Min: 0, Max: 36_500, Unit: "days", Meaning: "How long records keep their content. 0: for ever. What remains of an older one is a tombstone with its hash, so that the ledger still verifies. What is open or in force, and the last day, is never pruned; see `ostiary ledger prune`.", Needs: "R8.6, R9.1"},
	}}
)

// Sections lists every table that the file may have.
func Sections() []Section {
	return []Section{serverSection, principalSection, providerSection, policySection, toolSection, firewallSection, firewallToolSection, exportSection, ruleSection,
		approvalSection, budgetPrincipalSection, budgetSessionSection, evidenceSection, vaultSection, worldSection, ledgerSection}
}

// The words of the file's closed lists.
const (
	transportStdio   = "stdio"
	transportHTTP    = "http"
	transportSandbox = "sandbox_stdio"

	elicitOff = "off"
	elicitOn  = "on"

	ledgerDurable = "durable"
	ledgerRelaxed = "relaxed"

	frontierOptional = "optional"
	frontierRequired = "required"
)

var (
	trustTiers   = []string{"CONTROLLED_LOCAL", "USER_ADDED_REVIEWED", "ORG_MANAGED", "BLOCKED"}
	contentKinds = []string{"text", "image", "audio", "resource", "resource_link"}
	approvals    = []string{"never", "required"}
	elicits      = []string{elicitOff, elicitOn}
	frontiers    = []string{frontierOptional, frontierRequired}
)

func (s Section) key(name string) *Key {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return &s.Keys[i]
		}
	}
	return nil
}

func (s Section) names() []string {
	names := make([]string, len(s.Keys))
	for i, k := range s.Keys {
		names[i] = k.Name
	}
	return names
}
