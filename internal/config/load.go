package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFile bounds a configuration file.
const maxFile = 4 << 20

// Load reads and checks a file. env looks up environment variables, as [os.LookupEnv] does. A file that was read but is
// not valid gives [Faults], and so does one that everybody on the machine could write: it names programs to be started.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, Faults{{File: path, Problem: fmt.Sprintf("larger than %d bytes", maxFile)}}
	}
	everybody, group, err := writable(f, path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if everybody {
		return nil, Faults{{File: path, Problem: "everybody on this machine can write it, or its directory", Hint: "chmod o-w " + path + " and its directory"}}
	}
	c, err := Parse(path, data, env)
	if err == nil && group {
		c.Warnings = append(Faults{{File: path, Problem: "its group can write it, or its directory", Hint: "chmod g-w"}}, c.Warnings...)
	}
	return c, err
}

// Parse checks the text of a file. The name is for messages, and its folder is where relative paths begin.
func Parse(file string, data []byte, env func(string) (string, bool)) (*Config, error) {
	root, faults := parseTree(file, data)
	if root == nil {
		return nil, faults
	}
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	l := &loader{file: file, env: env, faults: faults, config: &Config{File: file}}
	l.read(root)
	if len(l.faults) > 0 {
		l.faults.sort()
		return nil, l.faults
	}
	l.warnings.sort()
	l.config.Warnings, l.config.settings = l.warnings, l.settings
	return l.config, nil
}

// loader collects what one reading of a file finds.
type loader struct {
	file string
	env  func(string) (string, bool)

	config   *Config
	faults   Faults
	warnings Faults
	settings []Setting
}

func (l *loader) fault(line int, key, hint, format string, args ...any) {
	l.faults = append(l.faults, &Fault{File: l.file, Line: line, Key: key, Problem: fmt.Sprintf(format, args...), Hint: hint})
}

func (l *loader) warn(line int, key, hint, format string, args ...any) {
	l.warnings = append(l.warnings, &Fault{File: l.file, Line: line, Key: key, Problem: fmt.Sprintf(format, args...), Hint: hint})
}

// read goes through the sections in the order in which they refer to each other.
func (l *loader) read(root *node) {
	top := []string{"server", "principal", "provider", "export", "rule", "approval", "budget", "evidence", "vault", "world", "ledger"}
	for _, k := range root.keys {
		if slices.Contains(top, k) {
			continue
		}
		hint := didYouMean(k, top)
		if hint == "" {
			hint = "known tables: " + strings.Join(top, ", ")
		}
		l.fault(root.table[k].line, quoteKey(k), hint, "unknown key")
	}
	l.server(root.child("server"))
	l.world(root.child("world"))
	l.approval(root.child("approval")) // policies refer to it
	for name, t := range l.named(root.child("provider"), "provider") {
		l.provider(name, t)
	}
	for name, t := range l.named(root.child("export"), "export") {
		l.export(name, t)
	}
	l.exportPaths()
	for name, t := range l.named(root.child("principal"), "principal") {
		l.principal(name, t)
	}
	l.tokens()
	l.rules(root.child("rule"))
	l.budget(root.child("budget"))
	l.evidence(root.child("evidence"))
	l.vault(root.child("vault"))
	l.ledger(root.child("ledger"))
}

// named yields the tables of a table of tables, in the file's order.
func (l *loader) named(parent *node, name string) func(yield func(string, *node) bool) {
	return func(yield func(string, *node) bool) {
		if parent == nil {
			return
		}
		if parent.kind != kindTable {
			l.fault(parent.line, name, "write ["+name+".NAME]", "expected a table, found %s", parent.kind)
			return
		}
		for _, k := range parent.keys {
			t := parent.table[k]
			if t.kind != kindTable {
				l.fault(t.line, joinKey(name, k), "write ["+name+".NAME] and the keys below it", "expected a table, found %s", t.kind)
				continue
			}
			if !yield(k, t) {
				return
			}
		}
	}
}

// relative resolves a path of the file against the file's folder.
func (l *loader) relative(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(l.file), path)
}

func (l *loader) approval(t *node) {
	s := l.section(approvalSection, t, "approval")
	s.unknown()
	l.config.Approval = Approval{Hold: s.seconds("hold_seconds"), Expiry: s.seconds("expiry_seconds"), Session: s.seconds("session_seconds"),
		Elicit: s.str("elicit", nil) == elicitOn}
}

func (l *loader) evidence(t *node) {
	s := l.section(evidenceSection, t, "evidence")
	s.unknown()
	l.config.Evidence = Evidence{Retention: time.Duration(s.integer("retention_days")) * 24 * time.Hour,
		MaxBytes: s.integer("max_bytes"), MaxPayload: s.integer("max_payload_bytes")}
}
