//go:build unix && !darwin

package vault

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// keyringThere says why there can be no keyring. Without a session bus the library would start one, which no machine
// without a desktop wants.
func keyringThere(env func(string) (string, bool)) error {
	if address, ok := env("DBUS_SESSION_BUS_ADDRESS"); ok && address != "" && !strings.HasPrefix(address, "autolaunch:") {
		return nil
	}
	if dir, ok := env("XDG_RUNTIME_DIR"); ok && dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "bus")); err == nil {
			return nil
		}
	}
	return errors.New("there is no session bus to reach a keyring by, as on a machine without a desktop")
}
