package durable

// SyncDir does nothing: Windows has no handle on a directory to flush, and its file systems journal the rename.
func (OS) SyncDir(string) error { return nil }
