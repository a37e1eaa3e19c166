package config

import "strings"

// didYouMean renders the candidate nearest to what was written, if one is near enough to be a slip of the finger.
func didYouMean(got string, candidates []string) string {
	best, bestDistance := "", len(got)/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(got), strings.ToLower(c)); d <= bestDistance && d < len(c) {
			if best == "" || d < bestDistance {
				best, bestDistance = c, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + quote(best) + "?"
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // no key is that long; keep the work bounded
		return max(len(a), len(b))
	}
	var before, prev, row [65]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}

// oneOf lists words as a sentence does: a, b or c.
func oneOf(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}
