package ostiary_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every package has exactly one package comment, which begins with its name.
func TestPackageDocs(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p struct {
			ImportPath, Name, Dir string
			GoFiles               []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" { // "Bench measures …", or "Command ostiary …"
			program := filepath.Base(p.ImportPath)
			want = strings.ToUpper(program[:1]) + program[1:] + " "
		}
		var docs []string
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil && !onlyDirectives(file.Doc) {
				docs = append(docs, file.Doc.Text())
			}
		}
		switch {
		case len(docs) != 1:
			t.Errorf("%s has %d package comments, want 1", p.ImportPath, len(docs))
		case !strings.HasPrefix(docs[0], want) && !(p.Name == "main" && strings.HasPrefix(docs[0], "Command ")):
			t.Errorf("%s: the package comment begins with %.30q, want %q", p.ImportPath, docs[0], want)
		}
	}
}

func onlyDirectives(g *ast.CommentGroup) bool { return strings.TrimSpace(g.Text()) == "" }
