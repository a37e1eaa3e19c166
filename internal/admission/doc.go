// Package admission keeps what was looked at and let in of a provider, and says what has changed since (R6.6).
//
// It owns pins (the whole definition of a tool, or what there is to say of the provider itself, with who admitted or
// refused it), the comparison of a listing with them ([Compare]), quarantine and its reasons, the side-by-side text that a
// reviewer reads, and the lock file (R6.11). The host compares at every start and re-listing, and hands decisions in; the
// gate asks the [Book] before every call. It must not know how a listing was fetched, a store, a clock or a terminal.
//
// # The rules
//
//   - a new provider: all that it offers waits;
//   - a new tool: it alone waits;
//   - a changed tool, whatever has changed of it: it alone is quarantined, and the change waits;
//   - a removed tool: it is gone, and its pin stays for when it comes back as it was;
//   - changed instructions, or a server that is started or reached differently: the whole provider is quarantined.
//
// A provider whose first use admits it ([FirstUse]) skips the first of them, once. A change always waits.
package admission
