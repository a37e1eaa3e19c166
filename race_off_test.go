//go:build !race

package ostiary_test

const crashes = 100

// flood is how many events are sent at once; more than are held.
const flood = 12_000
