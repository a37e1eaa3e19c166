// Package firewall says what may cross: in arguments on the way out, in results, texts and tool definitions on the way in
// (R6.7, R6.9, R8).
//
// It is pure: bytes and rules in, a [Verdict] or findings out; no clock, no network, no file, nothing remembered between two
// calls. The gate asks it before a request leaves and after an answer came, and releases nothing that it did not accept.
// It must not know which server or user it serves beyond what it is handed.
//
// A screening reads the document strictly once ([document]), takes every string of it through its views (as it stands,
// normalised, decoded: [view]), and asks each inspector of each view. One file is one inspector. A finding names a code from
// one closed list ([Codes]); [Rules] say what a code does. What an inspector cannot finish (a panic, a spent budget, an ended
// context) is a finding too, and withholds (F-57, F-58).
package firewall
