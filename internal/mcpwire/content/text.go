package content

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// NormalizedText is the text that stands for a result (R3.6): its structuredContent if the key is there, whatever its
// value, else its text blocks joined by line breaks. Structured content is written with sorted keys, without blanks, and
// with every number as the provider wrote it, so that integers beyond 2^53 stay exact.
func NormalizedText(result []byte) (string, error) {
	if v := Member(result, "structuredContent"); v != nil {
		out := jsontext.Value(slices.Clone(v))
		err := out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
		if err != nil {
			return "", fmt.Errorf("normalise structured content: %w", err)
		}
		return string(out), nil
	}
	var texts []string
	for block := range Elements(Member(result, "content")) {
		if t, _ := String(Member(block, "type")); t != "text" {
			continue
		}
		s, ok := String(Member(block, "text"))
		if !ok {
			return "", errors.New("normalise content: a text block without text")
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n"), nil
}

// ContentKinds lists the distinct types of a result's content blocks in the order of their first use (R3.7).
func ContentKinds(result []byte) []string {
	var kinds []string
	for block := range Elements(Member(result, "content")) {
		if t, _ := String(Member(block, "type")); !slices.Contains(kinds, t) {
			kinds = append(kinds, t)
		}
	}
	return kinds
}
