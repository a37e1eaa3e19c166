// Package call holds the nouns of a governed call: who asks, for which tool, with which arguments, and what is known of
// the effect afterwards.
//
// It owns the closed lists that every edge speaks (outcomes, deliveries, effects, stages, retry classes, error codes) and
// the identity of a tool. Every other package imports it; it imports the standard library alone. It must not know JSON-RPC
// ids, the MCP SDK, HTTP, SQL, a clock or a logger.
//
// Values of the enumerations are safe when zero: an unset [Status] is unknown, an unset [Delivery] is unknown, an unset
// [EffectClass] is EXTERNAL_SIDE_EFFECT.
package call
