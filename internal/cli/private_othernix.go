//go:build unix && !linux

package cli

func keepPrivate() error { return noCore() }
