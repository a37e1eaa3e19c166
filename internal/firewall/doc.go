// Package firewall says what may cross, in results on the way in.
//
// Everything in it is pure; one file an inspector. The gate asks it after an answer came and before anything of it is
// released. It must not know which server or user it serves beyond what it is handed.
package firewall
