package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Markdown is docs/CONFIG.md, made from the same table of keys that the reader works with.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from internal/config/keys.go: go test ./internal/config -update -->

Ostiary reads one TOML file, ` + "`ostiary.toml`" + `. It is refused as a whole, before anything is started, if it has an unknown key,
a wrong type, a value out of bounds or a reference to something that does not exist; every fault is reported with its
line, its key and what was expected. ` + "`ostiary config check`" + ` does nothing but that, ` + "`ostiary config show`" + ` prints what holds
with all defaults, and ` + "`ostiary config schema`" + ` prints a JSON Schema for editors.

No secret stands in the file: it names environment variables and vault entries. A literal that looks like a secret is
warned of, and never shown. Nothing is substituted in values: ` + "`${NAME}`" + ` is just text.

A package with dots in it is one quoted key, ` + "`[provider.\"org.example.files\"]`" + `; without the quotes TOML reads nested tables,
which is refused. Paths are relative to the file.
`)
	for _, s := range Sections() {
		fmt.Fprintf(&b, "\n## `[%s]`\n\n%s\n\n", s.Name, s.Meaning)
		b.WriteString("| key | type | default | meaning | requirement |\n|---|---|---|---|---|\n")
		for _, k := range s.Keys {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Name, k.typeCell(), k.defaultCell(), k.meaningCell(), k.Needs)
		}
	}
	return b.String()
}

func (k Key) typeCell() string {
	t := k.Type.String()
	if k.Enum != nil {
		words := make([]string, len(k.Enum))
		for i, w := range k.Enum {
			words[i] = "`" + w + "`"
		}
		if k.Type == typeStrings || k.Type == typeStringTable {
			return t + ": " + strings.Join(words, ", ")
		}
		return strings.Join(words, ", ")
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch k.Type {
	case typeInteger, typeSeconds:
		return fmt.Sprintf("%s, %s to %s %s", t, number(k.Min), number(k.Max), k.Unit)
	default:
		return t
	}
}

func (k Key) defaultCell() string {
	switch {
	case k.Required:
		return "**required**"
	case k.Default != "":
		return "`" + k.Default + "`"
	case k.Note != "":
		return k.Note
	default: // the one key that its transport cannot do without
		return "**required**"
	}
}

func (k Key) meaningCell() string {
	m := strings.ReplaceAll(k.Meaning, "|", `\|`)
	if k.Only != "" {
		m = "Only for `" + k.Only + "`. " + m
	}
	return m
}
