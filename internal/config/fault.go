package config

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong in a configuration file.
type Fault struct {
	File    string
	Line    int    // from 1; 0: the file as a whole
	Key     string // dotted, as TOML would write it; "" where no key is at fault
	Problem string // what is wrong and what was expected
	Hint    string // what to do about it; "" if that is plain
}

// Error says all of it in one line, except the hint.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Problem)
	return b.String()
}

// Faults is everything that is wrong in a file, in the order of its lines. As an error it has one line a fault, hints
// included.
type Faults []*Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
		if f.Hint != "" {
			lines[i] += " (" + f.Hint + ")"
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each fault to errors.As.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b *Fault) int { return a.Line - b.Line })
}
