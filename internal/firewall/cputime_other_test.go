//go:build !unix

package firewall

import "time"

func cpuTime() time.Duration { return 0 }
