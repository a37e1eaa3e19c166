//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// result is what the suite found in one scenario.
type result struct {
	scenario string
	count    map[string]int // by status
	bad      []string       // checks that failed or warned
}

type results []result

var stamp = regexp.MustCompile(`-20\d\d-\d\d-\d\dT[\d-]+Z$`)

// tally reads the checks.json of every scenario below a folder.
func tally(dir, side string) (results, error) {
	var all results
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status string }
		if err := json.Unmarshal(b, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		// The folder of a server's scenario begins with server-, and so does the name of some.
		r := result{scenario: strings.TrimPrefix(stamp.ReplaceAllString(name, ""), side+"-"), count: map[string]int{}}
		for _, c := range checks {
			r.count[c.Status]++
			if bad := c.Status + ":" + c.ID; (c.Status == "FAILURE" || c.Status == "WARNING") && !slices.Contains(r.bad, bad) {
				r.bad = append(r.bad, bad)
			}
		}
		all = append(all, r)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the suite left no results")
	}
	slices.SortFunc(all, func(a, b result) int { return strings.Compare(a.scenario, b.scenario) })
	return all, err
}

func (all results) print(w io.Writer) {
	total := map[string]int{}
	for _, r := range all {
		for status, n := range r.count {
			total[status] += n
		}
		fmt.Fprintf(w, "  %-50s %3d ok %3d failed %2d warned %2d skipped  %s\n", r.scenario, r.count["SUCCESS"], r.count["FAILURE"], r.count["WARNING"], r.count["SKIPPED"], strings.Join(r.bad, " "))
	}
	fmt.Fprintf(w, "  %d scenarios: %d checks ok, %d failed, %d warned, %d skipped\n", len(all), total["SUCCESS"], total["FAILURE"], total["WARNING"], total["SKIPPED"])
}

// check fails on scenarios in which nothing succeeded: the suite ticks one off that was never exercised. Those that are
// expected to fail, or to say nothing, are left out. It also fails on entries of either kind that are not needed any more,
// which the suite itself lets pass.
func (all results) check(side, expected, list string) error {
	failing, err := expectedFailures(expected, side)
	if err != nil {
		return err
	}
	silent, err := reasons(list)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range all {
		fails := slices.Contains(failing, r.scenario)
		switch says := r.count["SUCCESS"] > 0; {
		case !says && !fails && !silent[r.scenario]:
			errs = append(errs, fmt.Errorf("%s says nothing: no check succeeded", r.scenario))
		case says && silent[r.scenario]:
			errs = append(errs, fmt.Errorf("%s says something now: take its line out of %s", r.scenario, filepath.Base(list)))
		case says && fails && len(r.bad) == 0:
			errs = append(errs, fmt.Errorf("%s passes now: take its line out of %s", r.scenario, filepath.Base(expected)))
		}
	}
	return errors.Join(errs...)
}

// expectedFailures reads the scenarios under one key of a baseline file of the suite's.
func expectedFailures(file, side string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names []string
	in := false
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
		case !strings.HasPrefix(line, " "):
			in = trimmed == side+":"
		case in:
			names = append(names, strings.TrimSpace(strings.TrimPrefix(trimmed, "- ")))
		}
	}
	return names, nil
}

// reasons reads lines of a scenario and a reason.
func reasons(file string) (map[string]bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := map[string]bool{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: %s has no reason", file, name)
		}
		m[name] = true
	}
	return m, sc.Err()
}
