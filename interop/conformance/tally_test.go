//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestScenariosThatSayNothingAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, checks := range map[string]string{
		"server-server-initialize-2026-11-30T10-37-37-948Z": `[{"id":"a","status":"SUCCESS"}]`,
		"server-ping-2026-11-30T10-37-37-948Z":              `[{"id":"a","status":"INFO"}]`,
		"server-caching-2026-11-30T10-37-37-948Z":           `[{"id":"a","status":"FAILURE"}]`,
		"server-tasks-2026-11-30T10-37-37-948Z":             `[]`,
	} {
		write(t, filepath.Join(dir, "results", name, "checks.json"), checks)
	}
	expected := write(t, filepath.Join(dir, "expected.yml"), "server:\n  - caching # not there\nclient:\n  - ping # on the other side\n")
	list := write(t, filepath.Join(dir, "vacuous.txt"), "# a comment\ntasks  not offered\n")
	all, err := tally(filepath.Join(dir, "results"), "server")
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := all.check("server", expected, list); err == nil || err.Error() != "ping says nothing: no check succeeded" {
		t.Errorf("got %v", err)
	}
	if err := all.check("client", expected, list); err == nil || !strings.Contains(err.Error(), "caching") {
		t.Errorf("on the other side: %v", err)
	}
	stale := write(t, filepath.Join(dir, "stale.yml"), "server:\n  - server-initialize # passes\n  - caching # fails\n  - ping # fails\n")
	if err := all.check("server", stale, list); err == nil || err.Error() != "server-initialize passes now: take its line out of stale.yml" {
		t.Errorf("an entry that is not needed: %v", err)
	}
	if _, err := reasons(write(t, filepath.Join(dir, "bad.txt"), "tasks\n")); err == nil {
		t.Error("an entry without a reason was taken")
	}
}

// Every expected failure that is committed has its reason beside it.
func TestExpectedFailuresHaveReasons(t *testing.T) {
	for _, revision := range revisions {
		b, err := os.ReadFile("expected-" + revision + ".yml")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if entry, reason, _ := strings.Cut(line, "#"); strings.Contains(entry, "- ") && len(strings.TrimSpace(reason)) < 10 {
				t.Errorf("%s: no reason: %s", revision, line)
			}
		}
	}
	if _, err := reasons("vacuous.txt"); err != nil {
		t.Error(err)
	}
}
