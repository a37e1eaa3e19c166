//go:build !race

package ostiary_test

const crashes = 100
