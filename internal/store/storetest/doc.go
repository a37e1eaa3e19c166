// Package storetest is the suite that every implementation of store.Store passes.
//
// It owns what the contract says in testable words. An implementation's tests drive it through [Run]; it hands each test a
// store of its own. It must not know which database keeps the rows.
package storetest
