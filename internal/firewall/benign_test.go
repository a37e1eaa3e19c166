package firewall

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

type tool struct {
	server     string
	name       string
	definition []byte
}

// benignTools are the tools that public servers list, as they listed them.
func benignTools(t testing.TB) (tools []tool) {
	f, err := os.Open("testdata/benign_definitions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var d struct {
			Server     string          `json:"server"`
			Definition json.RawMessage `json:"definition"`
		}
		var n struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(sc.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(d.Definition, &n); err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool{d.Server, n.Name, d.Definition})
	}
	return tools
}

// benignText are the written strings, without the comment.
func benignText(t testing.TB) (list []string) {
	b, err := os.ReadFile("testdata/benign_text.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		list = append(list, strings.ReplaceAll(line, `\n`, "\n"))
	}
	return list
}

// benignStrings are strings without harm: those of the definitions, written text, and made-up identifiers.
func benignStrings(t testing.TB) (list []string) {
	seen := map[string]bool{}
	add := func(s string) {
		if !seen[s] && s != "" {
			seen[s] = true
			list = append(list, s)
		}
	}
	for _, d := range benignTools(t) {
		doc, err := parse(d.definition, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range doc.texts {
			if !s.isName && len(s.value) >= 24 {
				add(string(s.value))
			}
		}
	}
	for _, s := range benignText(t) {
		add(s)
	}
	for i := range 60 {
		s := fmt.Sprint(i)
		h := func(n int) string { return fillFrom(s, n, hexDigits) }
		id := h(8) + "-" + h(4) + "-4" + h(3) + "-a" + h(3) + "-" + fillFrom(s+"u", 12, hexDigits)
		for _, v := range []string{
			id, "request " + id + " took 31 ms", `{"id":"` + id + `","ok":true,"count":` + s + `}`, h(32), "commit " + h(40), "sha256:" + h(64), "etag: \"" + h(32) + "\"",
			"https://cdn.example.org/assets/" + h(20) + "/app." + h(8) + ".js", "https://example.org/p/" + s + "?id=" + id + "&lang=en&page=" + s,
			"docker.io/library/app@sha256:" + h(64), "arn:aws:s3:::bucket-" + s + "/logs/2026/03/" + h(12) + ".gz", "/srv/data/2026/" + h(8) + "/report-" + s + ".pdf",
			fmt.Sprintf("2026-03-%02dT10:%02d:31.%sZ INFO worker-%d processed %d items in %d ms trace=%s", i%28+1, i, h(3), i, i*37, i*13, h(32)),
			"1764" + fillFrom(s, 9, "0123456789"), "order " + fillFrom(s, 19, "123456789"), "id=" + fillFrom(s, 12, "0123456789"), "v1." + s + ".0-rc." + fillFrom(s, 1, "123456789") + "+build." + h(7),
			"cursor: " + b64("page:"+s+";after:"+h(10)), `{"nextCursor":"` + b64(`{"offset":`+s+`0,"k":"`+h(6)+`"}`) + `"}`,
			"data:image/png;base64," + b64("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"+fill(s, 120)), "rev " + fill(s, 11) + " of " + fill(s+"x", 22),
			"session " + fill(s, 20) + " opened by user" + s, fmt.Sprintf("| %s | %d.%02d | %s |", h(6), i*3, i, id),
		} {
			add(v)
		}
	}
	return list
}

// R8.3: what is benign goes through, unchanged. The strings are screened as results and as arguments.
func TestLabelledBenign(t *testing.T) {
	e := engine(t)
	tools := benignTools(t)
	heldTools := 0
	for _, d := range tools {
		if f := e.ScreenDefinition(t.Context(), d.definition, d.name, nil); len(f) > 0 {
			heldTools++
			t.Logf("definition %s of %s: %s at %s: %s", d.name, d.server, f[0].Code, f[0].Place, f[0].Excerpt)
		}
	}
	strs := benignStrings(t)
	var held, secrets, changed, arguments int
	for _, s := range strs {
		r := textResult(s)
		v := e.ScreenResult(t.Context(), r, Rules{}, nil)
		switch {
		case v.Withheld():
			held++
			t.Logf("held: %s: %.200q", v.Reasons, s)
		case string(v.Released) != string(r):
			changed++
			t.Logf("changed: %.200q → %.200s", s, v.Released)
		}
		if hasClass(v.Findings, ClassCredential) {
			secrets++
		}
		if v := e.ScreenArguments(t.Context(), []byte(`{"value":`+quoted(s)+`}`), Rules{}); v.Withheld() {
			arguments++
			t.Logf("argument held: %s: %.200q", v.Reasons, s)
		}
	}
	rate := func(n, of int) float64 { return 100 * float64(n) / float64(of) }
	t.Logf("benign: %d of %d definitions held (%.2f %%); of %d strings %d held (%.2f %%), %d changed (%.2f %%), %d taken for secrets (%.2f %%), %d held as arguments (%.2f %%)",
		heldTools, len(tools), rate(heldTools, len(tools)), len(strs), held, rate(held, len(strs)), changed, rate(changed, len(strs)), secrets, rate(secrets, len(strs)), arguments, rate(arguments, len(strs)))
	if len(strs) < 2000 {
		t.Errorf("the set has %d strings, want 2000", len(strs))
	}
	if rate(heldTools, len(tools)) > 1 || rate(held+changed, len(strs)) > 1 || rate(secrets, len(strs)) > 1 || rate(arguments, len(strs)) > 1 {
		t.Error("more than 1 % of what is benign is held")
	}
}
