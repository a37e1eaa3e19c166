package cli

import "testing"

// R8.1: only a result is handed over when it is released; of anything else the answer says that nothing more happens.
func TestR8_1_ReleasingWhatIsNoResult(t *testing.T) {
	if words := noEffect("RESULT"); words != "" {
		t.Errorf("the release of a result is said to be without effect: %s", words)
	}
	for direction, want := range map[string]string{
		"ARGUMENTS": "the call was refused, and nothing of it will be sent; made again, it is judged again",
		"EVENT":     "the fact keeps its withheld text",
		"ERROR":     "its caller was answered without it, and is not given it",
	} {
		if got := noEffect(direction); got != want {
			t.Errorf("%s: %q", direction, got)
		}
	}
}
