package adminapi

// ownDir has nothing to check: the temporary directory is the user's own.
func ownDir(string) error { return nil }
