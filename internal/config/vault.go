package config

import "github.com/ostiary/ostiary/internal/vault"

// VaultOptions say where the vault of a data directory and its key are. What is no matter of configuration is left to
// defaults, except the environment, which is the one that was given.
func (c *Config) VaultOptions(dataDir string, env func(string) (string, bool)) vault.Options {
	o := vault.Options{Dir: dataDir, Keys: []vault.Place{vault.InEnvironment, vault.InFile}, KeyVariable: c.Vault.KeyEnv, KeyFile: c.Vault.KeyFile, Env: env}
	if c.Vault.Keyring {
		o.Keys = append(o.Keys, vault.InKeyring)
	}
	return o
}

func (l *loader) vault(t *node) {
	s := l.section(vaultSection, t, "vault")
	s.unknown()
	l.config.Vault = Vault{KeyEnv: s.str("key_env", nil), KeyFile: l.relative(s.str("key_file", nil)), Keyring: s.boolean("keyring")}
	if s.hasText("key_env") && !envName.MatchString(l.config.Vault.KeyEnv) {
		s.faultAt("key_env", "the file names the variable; it never holds the key itself", "expected the name of an environment variable")
	}
}
