//go:build !race

package contract_test

// sequences of messages that the property is tried with.
const sequences = "100"
