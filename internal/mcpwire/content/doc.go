// Package content translates between wire bytes and call nouns, both ways: strict frames, results and errors, names and
// headers. Everything in it is pure and fuzzed. It must not do I/O, and must not know sessions or policy.
package content
