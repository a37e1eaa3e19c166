//go:build race

package contract_test

// sequences of messages that the property is tried with: with the race detector each takes ten times as long.
const sequences = "20"
