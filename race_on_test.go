//go:build race

package ostiary_test

// crashes is how often the gateway is killed. With the race detector a start takes several times as long, and the crash
// itself shows nothing of a race: the full number is for the build without it.
const crashes = 12

// flood is how many events are sent at once; more than are held.
const flood = 6_000
