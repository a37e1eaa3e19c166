// Package policy answers one question: may this principal use this tool so? It is pure: the same question has the same
// answer, with the rule that gave it.
//
// It owns the tool-set policies (exactly one per provider, R7.1) and their defaults by effect class (R7.2). The gate asks
// it; a visible tool or a healthy connection grants nothing (R7.3). It must not know a clock, a store, a connection or who
// is asked for approval.
package policy
