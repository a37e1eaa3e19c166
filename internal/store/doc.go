// Package store is the contract between the steps of the path and whatever keeps their rows.
//
// It owns the transaction value, the two ways of writing (awaited and not), and the two errors that a caller may decide
// on. Each step package declares the few row operations that it needs; [Tx] and [View] embed them, so that step packages
// never import a database. internal/store/sqlstore implements it; internal/store/storetest is the suite that an
// implementation passes. It must not know SQL, the path's order or what a row means.
package store
