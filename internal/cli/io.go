package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal says whether a stream is a terminal; pipes, files and the buffers of tests are not.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// canPrompt says whether a question may be asked.
func (a *app) canPrompt() bool {
	return !a.noInput && (a.asTerminal || isTerminal(a.in) && isTerminal(a.err))
}

// say writes one line of talk.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.err, clean(fmt.Sprintf(format, args...)))
	}
}

// printJSON writes a value as the result of a command with --json: indented, in its own characters.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err := a.out.Write(inert(b.Bytes()))
	return err
}

// printJSONLine writes a value on one line, for streams of them.
func (a *app) printJSONLine(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err := a.out.Write(inert(b.Bytes()))
	return err
}

// printErrorJSON writes the one line on stderr that ends a command with --json.
func (a *app) printErrorJSON(code, message, hint string) {
	type body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]body{"error": {code, strings.TrimSpace(message), hint}}) // strings always encode
	_, _ = a.err.Write(inert(b.Bytes()))                                               // there is nowhere left to say it
}

// table writes rows in columns. Cells are cleaned by their callers; a cell has one line. The last column is not padded, so
// that nothing trails.
func table(w io.Writer, header []string, rows [][]string) error {
	width := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
