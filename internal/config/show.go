package config

import (
	"fmt"
	"io"
)

// Settings lists every key with the value that holds, defaults included and secrets left out, in the order of reading.
func (c *Config) Settings() []Setting { return c.settings }

// Show writes the settings as TOML with dotted keys: what holds, where it is from, and nothing secret. Keys that have no
// value at all are comments.
func Show(w io.Writer, c *Config) error {
	for _, s := range c.settings {
		line := s.Key + " = " + s.Value
		switch {
		case s.Value == "":
			line = "# " + s.Key + " is not set"
		case s.Default:
			line += "  # default"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("show configuration: %w", err)
		}
	}
	return nil
}
