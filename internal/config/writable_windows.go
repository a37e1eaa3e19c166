package config

import "os"

// writable has nothing to go by: access lists are not modes.
func writable(*os.File, string) (everybody, group bool, err error) { return false, false, nil }
