// Package policy answers one question: may this principal use this tool so? It is pure: the same question has the same
// answer, with the rule that gave it.
//
// It owns the tool-set policies (exactly one per provider, R7.1) and their defaults by effect class (R7.2), the rules that
// an operator writes in CEL, the labels of tools and the taints of sessions (flow.go), and the budgets of callers
// (budget.go). The gate asks it; a visible tool or a healthy connection grants nothing (R7.3). It must not know a clock, a
// store, a connection or who is asked for approval.
//
// # Who decides
//
// A call is denied before any rule is looked at if nobody makes it, its provider's tools are not available, or its effect
// class is UNSUPPORTED_EFFECT: no rule changes that. Otherwise, whatever the order of the rules in the file:
//
//  1. A rule that cannot be evaluated denies: an attribute that is missing, a type that does not fit, a cost limit that is
//     reached. So does a deny rule that matches. Of several the first in the file gives its name.
//  2. An ask rule that matches asks.
//  3. What the tool-set policy says stands, with one exception. An approval that is asked for by effect class alone is not
//     needed if an allow rule matches that names this class (R7.2: "in so many words"). What a tool-set policy requires
//     no rule drops (R7.1).
//  4. A call that could carry out what the session has read asks all the same, for these arguments alone (see
//     [Policy.Judge] and [Labels]), unless an allow rule for flows matches.
//
// Annotations of a provider are no part of any of this (R6.7): no rule sees them.
//
// # What an expression sees
//
//	principal.id  export  provider.package  provider.trust  tool.id  tool.name  tool.effect   texts
//	tool.labels  session.taints                                                               lists of texts
//	args                                                                                      the arguments, of any type
//
// The operators and macros of CEL are there, and size, contains, startsWith, endsWith, matches (with a literal pattern),
// within and the conversions int, uint, double, string and bool; nothing that knows a time, a file or an address. As
// anywhere in CEL, && and || have a value if one side alone decides it, though the other is an error, and values of
// different types are not equal: args.n == '1' is false of the number 1.
//
// Integers in arguments are exact. What a rule cannot look at as it is, it cannot look at: a number beyond 64 bits, a text
// beyond 64 KiB, more than 50 000 values. Rules that look elsewhere are not concerned.
package policy
