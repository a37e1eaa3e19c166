// Package ledger is the append-only record of discovery, decisions, calls, verdicts and approvals, and what makes it
// tamper-evident.
//
// It owns the shape of a record, its canonical form, the hash chain, the RFC 6962 tree over the chain with signed
// checkpoints, verification of a store or of an export, and the export format (JSON Lines). The gate and the host append
// to it through [Tx]; internal/store keeps its rows. It must not know SQL, HTTP, MCP or the terminal.
package ledger
