// Package sqlstore keeps the rows of one gateway in a SQLite file.
//
// It owns the data directory (its lock, its file modes), the schema and its migrations, the one writer that groups
// waiting transactions into commits, the store's health, and what a start does to trust what it finds. The host opens it;
// the gate and the operations use it as a store.Store. It must not know what a row means, policy, MCP or HTTP.
//
// # How a write travels
//
// Update and Enqueue put a function into one bounded queue. The writer takes all that wait, runs the functions one after
// the other, and writes what they did with one commit. A function works on memory alone: records go to the end of the
// chain, intents into a map, each with a note of how to undo it. So a function that fails is undone by itself and the rest
// of its group is untouched, without a savepoint and without running anything again; a commit that fails undoes the whole
// group; and an intent that is opened and closed within one group costs no row.
//
// Approvals, pins and quarantine are few, and in memory too; a commit writes the rows that its group has changed.
//
// Evidence is too much to be in memory. A transaction reads an item that it names from what is committed, which nobody
// else changes, unless its group has touched it: what the group did lies over that, with the same notes of how to undo it.
//
// # Locks
//
// [Store.mu] is held shared while something is sent to the queue and exclusively to close it; health has a mutex of its
// own that is never held together with it.
package sqlstore
