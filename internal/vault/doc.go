// Package vault keeps secrets at rest.
//
// It owns one file, vault.age in the data directory, and the key that opens it. Configuration names its entries
// (`credential = "search-token"`), logins write their tokens into it, and evidence seals what was held to its recipient.
// The host opens it. It must not know what a secret is for, which provider or user it belongs to, MCP or HTTP.
//
// # The file
//
//	ostiary-vault/1 <recipient> <sealing recipient> <mac>\n
//	<age file, encrypted to the recipient: canonical JSON>
//
// age (age-encryption.org/v1, X25519) keeps the content secret. But age lets everybody write who knows the recipient, so
// the first line has a MAC over all of the file, with a key that is derived from the identity: only who could read the
// vault could have written it. Without the first line the file is an ordinary one for the age tool:
//
//	tail -n +2 vault.age | age -d -i vault.key
//
// # The key
//
// The key is an age identity: from an environment variable, from a key file, or from the keyring of the operating system,
// in the order of [Options].Keys. The first place that has one is used, and a key there that is not fit to be used is an
// error, not a reason to look further. Without the right key the vault is locked: [ErrLocked], which names the cause and
// what to do, for what needs a secret and for nothing else (F-11). There is no plaintext to fall back to.
//
// # Sealing
//
// The content has identities of its own for sealing, and the first line shows the recipient of the newest. So evidence can
// be written by who cannot read it, and a new key for the vault leaves old evidence readable.
//
// # Writers and readers
//
// A file is replaced as a whole: temporary file, fsync, rename, fsync of the directory. So a reader, in any process, sees
// the old content or the new. Writers, in any process, take turns by a lock on vault.lock. [Vault.mu] guards the cached
// key alone and is never held while anything waits.
package vault
