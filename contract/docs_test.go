package contract_test

import (
	"os"
	"strings"
	"testing"
)

// The server in docs/EXTENSIONS.md is the one of the package's example, which runs.
func TestDocumentedServerIsTheExample(t *testing.T) {
	doc, err := os.ReadFile("../docs/EXTENSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```go\n")
	code, _, ok := strings.Cut(rest, "```")
	if !ok || !strings.Contains(code, "contract.AddTool") {
		t.Fatal("there is no server in docs/EXTENSIONS.md")
	}
	var indented strings.Builder
	for line := range strings.Lines(code) {
		if line != "\n" {
			indented.WriteByte('\t')
		}
		indented.WriteString(line)
	}
	if !strings.Contains(string(example), indented.String()) {
		t.Errorf("docs/EXTENSIONS.md has another server than example_test.go:\n%s", code)
	}
}
