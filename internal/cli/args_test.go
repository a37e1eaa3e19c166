package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const argsSchema = `{"type":"object","properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"o":{"type":"object"},"a":{"type":"array"},
	"u":{"type":["integer","null"]},"w":{"type":["string","integer"]},"x":{},"z":{"type":"null"}}}`

func testApp(stdin string) *app {
	return newApp(strings.NewReader(stdin), io.Discard, io.Discard, func(string) (string, bool) { return "", false })
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, doc, binary := write("text", "line\n"), write("doc", `{"k": [1, 2]}`+"\n"), write("bin", "\xff\x00")
	for name, c := range map[string]struct {
		pairs []string
		input string
		want  string // the arguments, or the error
	}{
		"none":                {nil, "", `{}`},
		"string":              {[]string{"s=1"}, "", `{"s":"1"}`},
		"string of JSON":      {[]string{`s={"a":1}`}, "", `{"s":"{\"a\":1}"}`},
		"empty":               {[]string{"s="}, "", `{"s":""}`},
		"equals in the value": {[]string{"s=a=b:=c"}, "", `{"s":"a=b:=c"}`},
		"integer":             {[]string{"i=9007199254740993"}, "", `{"i":9007199254740993}`},
		"huge integer":        {[]string{"i=123456789012345678901234567890"}, "", `{"i":123456789012345678901234567890}`},
		"no integer":          {[]string{"i=1.5"}, "", `the argument "i" must be integer`},
		"words for integer":   {[]string{"i=one"}, "", `the argument "i" must be integer`},
		"number":              {[]string{"n=1.10"}, "", `{"n":1.10}`},
		"exponent":            {[]string{"n=1e400"}, "", `{"n":1e400}`},
		"NaN":                 {[]string{"n=NaN"}, "", `the argument "n" must be number`},
		"boolean":             {[]string{"b=false"}, "", `{"b":false}`},
		"no boolean":          {[]string{"b=yes"}, "", `the argument "b" must be boolean`},
		"object":              {[]string{`o={"a":1}`}, "", `{"o":{"a":1}}`},
		"array":               {[]string{`a=[1,"x"]`}, "", `{"a":[1,"x"]}`},
		"no array":            {[]string{`a=1,2`}, "", `the argument "a" must be array`},
		"nullable":            {[]string{"u=null"}, "", `{"u":null}`},
		"union":               {[]string{"w=7"}, "", `{"w":7}`},
		"union as text":       {[]string{"w=7a"}, "", `{"w":"7a"}`},
		"no type":             {[]string{"x=7"}, "", `{"x":"7"}`},
		"not in the schema":   {[]string{"other=7"}, "", `{"other":"7"}`},
		"json":                {[]string{`x:={"a": [1.0, 9007199254740993]}`}, "", `{"x":{"a": [1.0, 9007199254740993]}}`},
		"bad json":            {[]string{`x:={a}`}, "", `the argument "x" is no valid JSON`},
		"duplicate keys":      {[]string{`x:={"a":1,"a":2}`}, "", `the argument "x" is no valid JSON`},
		"two values":          {[]string{`x:=1 2`}, "", `the argument "x" is no valid JSON`},
		"file":                {[]string{"s=@" + text}, "", `{"s":"line\n"}`},
		"file is text always": {[]string{"x=@" + doc}, "", `{"x":"{\"k\": [1, 2]}\n"}`},
		"json file":           {[]string{"x:=@" + doc}, "", `{"x":{"k": [1, 2]}}`},
		"binary file":         {[]string{"s=@" + binary}, "", `the file for the argument "s" is no text`},
		"stdin":               {[]string{"s=@-"}, "", `{"s":"from stdin"}`},
		"at sign":             {[]string{"s=@@me"}, "", `{"s":"@me"}`},
		"no file":             {[]string{"s=@" + filepath.Join(dir, "none")}, "", `read argument`},
		"twice":               {[]string{"s=1", "s=2"}, "", `the argument "s" is given twice`},
		"no pair":             {[]string{"word"}, "", `"word" is no argument`},
		"no name":             {[]string{"=1"}, "", `"=1" is no argument`},
		"odd names":           {[]string{`a "b"=1`, "__proto__=2"}, "", `{"a \"b\"":"1","__proto__":"2"}`},
		"input":               {nil, ` {"i": 1.0, "s":"x" } `, `{"i":1.0,"s":"x"}`},
		"input replaced":      {[]string{"s=y", "b=true"}, `{"s":"x","i":1}`, `{"s":"y","i":1,"b":true}`},
		"input no object":     {nil, `[1]`, `the input is no valid JSON object`},
		"input duplicate":     {nil, `{"a":1,"a":2}`, `the input is no valid JSON object`},
		"input empty":         {nil, ` `, `the input is no valid JSON object`},
	} {
		t.Run(name, func(t *testing.T) {
			var input []byte
			if c.input != "" {
				input = []byte(c.input)
			}
			got, err := testApp("from stdin").arguments(c.pairs, input, readSchema([]byte(argsSchema)))
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got error %q, want %q", err, c.want)
				}
				return
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestArgumentsOfAClosedSchema(t *testing.T) {
	schema := readSchema([]byte(`{"properties":{"path":{"type":"string"}},"additionalProperties":false,"required":["path"]}`))
	_, err := testApp("").arguments([]string{"pth=x"}, nil, schema)
	if err == nil || !strings.Contains(err.Error(), `no argument "pth"`) {
		t.Errorf("got %v", err)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("s=x", `{"a":1}`, argsSchema)
	f.Add("i=12", ``, argsSchema)
	f.Add("x:=[1,{}]", `{}`, `{"properties":7}`)
	f.Add("w=\xff", `{"s":"y"}`, `{"properties":{"w":{"type":["string",1]}}`)
	f.Fuzz(func(t *testing.T, pair, input, schema string) {
		if strings.Contains(pair, "=@") {
			return // reads files
		}
		got, err := testApp("").arguments([]string{pair}, []byte(input), readSchema([]byte(schema)))
		if err != nil {
			return
		}
		if v := jsontext.Value(got); !v.IsValid() || v.Kind() != '{' {
			t.Errorf("%q and %q give %s", pair, input, got)
		}
		if !json.Valid(got) {
			t.Errorf("no JSON: %s", got)
		}
	})
}
