// Package review makes untrusted text fit for the eyes of a person who decides: everything is on one terminal-safe line,
// and nothing that is there is invisible.
//
// It owns what counts as hidden and how it is shown. approval and admission drive it for what reviewers see. It is pure.
// It must not know what is being decided, a terminal or HTML: an edge that shows the text escapes it for its own medium.
package review
