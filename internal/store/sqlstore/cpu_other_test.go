//go:build !unix

package sqlstore

import "testing"

// reportCPU reports nothing where CPU time is not asked for.
func reportCPU(*testing.B, int) {}
