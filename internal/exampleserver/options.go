package exampleserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Era says which revisions the server speaks. The zero value is both eras.
type Era uint8

// The eras: per-request metadata (2026-07-28), the handshake revisions before it, or both on one connection.
const (
	EraBoth Era = iota
	EraModern
	EraLegacy
)

var eraNames = [...]string{"both", "modern", "legacy"}

func (e Era) String() string { return eraNames[min(int(e), len(eraNames)-1)] }

// Set makes *Era a [flag.Value].
func (e *Era) Set(s string) error {
	for i, n := range eraNames {
		if n == s {
			*e = Era(i)
			return nil
		}
	}
	return fmt.Errorf("era %q: expected one of %s", s, strings.Join(eraNames[:], ", "))
}

func (e Era) modern() bool { return e != EraLegacy }
func (e Era) legacy() bool { return e != EraModern }

// Options say how the server behaves. The zero value is a well-behaved server in both eras.
type Options struct {
	Era    Era
	Bearer string // HTTP: the token that every request must show; "" lets everyone in

	Counter string // file that gets one line with the tool's name for every call that ran; "" keeps count in memory only
	Notes   string // file that write_note appends to; "" keeps the notes in memory

	Tools int  // further tools extra_00001 … to list
	Page  int  // tools on one page of tools/list; 0: all on one
	Odd   bool // also list tools whose names or schemas a strict client has to refuse

	// Extensions offers tool-contract and world-events, and lists the tools that use them. ContractSettings are the raw
	// settings of tool-contract, for servers that get them wrong; "" is {"version":1}.
	Extensions       bool
	ContractSettings string
	EventSettings    string // the same of world-events
	EventsAtStart    int    // events that are sent before the first tools/list is answered

	Drifted    []string // tools whose definition is changed from the start, as drift would change it
	DriftAfter int      // change echo's definition, and say so, after this many calls; 0: never

	StartDelay time.Duration // wait before the first message is read (stdio) or answered (HTTP)

	// Die ends the process for the tool die. nil: only the connection ends, and [ServeStdio] returns [ErrDied].
	Die func()

	Logger *slog.Logger // nil: nothing is logged
}

// ErrDied is what [ServeStdio] returns when the tool die was called and no process was to be ended.
var ErrDied = errors.New("the tool die was called")

const maxExtraTools = 100_000

func (o *Options) validate() error {
	var faults []error
	if o.Tools < 0 || o.Tools > maxExtraTools {
		faults = append(faults, fmt.Errorf("tools %d: expected 0 to %d", o.Tools, maxExtraTools))
	}
	if o.Page < 0 {
		faults = append(faults, fmt.Errorf("page %d: expected 0 or more", o.Page))
	}
	if o.DriftAfter < 0 {
		faults = append(faults, fmt.Errorf("drift after %d: expected 0 or more", o.DriftAfter))
	}
	for _, name := range o.Drifted {
		if findTool(name) == nil {
			faults = append(faults, fmt.Errorf("drifted %q: no such tool", name))
		}
	}
	return errors.Join(faults...)
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// tally appends one line to the file of a counter. A file that is appended to holds the truth even when several processes
// of this server come and go, which is what effect-once tests are about.
func tally(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open counter: %w", err)
	}
	_, err = io.WriteString(f, line+"\n")
	return errors.Join(err, f.Close())
}
