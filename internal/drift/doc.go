// Package drift says whether a tool is still the one that was frozen or admitted: canonical form, digests, and what
// changed between two catalogs.
//
// Everything in it is pure. Digests are SHA-256 over RFC 8785 canonical JSON, with integers kept exact, of a provider's
// raw bytes: the whole definition counts, and classifying a change never makes it count less. The provider package and the
// gate drive it. It must not know how a tool list was fetched, nor what a mismatch leads to.
package drift
