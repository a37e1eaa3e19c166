package firewall

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of codes into docs/FIREWALL.md")

// The table of codes in docs/FIREWALL.md is the list of codes.
func TestDocumentedCodes(t *testing.T) {
	const path, begin, end = "../../docs/FIREWALL.md", "<!-- codes:begin -->\n", "<!-- codes:end -->"
	var b strings.Builder
	b.WriteString("\n| code | class | sensitivity | in results | in arguments | meaning |\n|---|---|---|---|---|---|\n")
	for _, c := range Codes() {
		argument := c.Argument.String()
		if c.Class == ClassDefinition || c.Class == ClassOutputSchema || c.Class == ClassInstruction || c.Class == ClassContentKind || c.Class == ClassMismatch {
			argument = "–"
		}
		result := c.Result.String()
		if c.Class == ClassArgument {
			result = "–"
		}
		if c.Class == ClassDefinition {
			result = "reported"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.Code, c.Class, c.Sensitivity, result, argument, c.Meaning)
	}
	b.WriteString("\n")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the codes", path)
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(doc) != want {
		t.Errorf("%s is out of date: go test -run DocumentedCodes -update ./internal/firewall/", path)
	}
}
