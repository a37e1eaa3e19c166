package call

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestR2_3_ToolID(t *testing.T) {
	for _, c := range []struct{ pkg, name string }{{"files", "read"}, {"org.example.files", "Read-File_2"}, {WorldPackage, "head"}} {
		pkg, name, ok := NewToolID(c.pkg, c.name).Split()
		if !ok || pkg != c.pkg || name != c.name {
			t.Errorf("Split(NewToolID(%q, %q)) = %q, %q, %v", c.pkg, c.name, pkg, name, ok)
		}
	}
	for _, bad := range []ToolID{"", "read", "aur.mcp.", "aur.mcp.files", "aur.mcp.files.", "aur.mcp..read", "mcp.files.read",
		"aur.world", "aur.world.", "aur.world.a.b", "aur.worlds.head", "aur.mcp.aur.world.head"} {
		if pkg, name, ok := bad.Split(); ok {
			t.Errorf("Split(%q) = %q, %q", bad, pkg, name)
		}
	}
	for pkg, ok := range map[string]bool{"a": true, "a.b-c_1": true, "": false, "A": false, "a..b": false, ".a": false, "a.": false, "1a": false, "a b": false, "a/b": false, "é": false} {
		if err := CheckPackage(pkg); (err == nil) != ok {
			t.Errorf("CheckPackage(%q) = %v", pkg, err)
		}
	}
	for name, ok := range map[string]bool{"a": true, "Screenshot": true, "a-b_1": true, "": false, "_a": false, "1": false, "a.b": false, "a b": false, "a\n": false, "ａ": false, "[": false, "a@": false} {
		if err := CheckToolName(name); (err == nil) != ok {
			t.Errorf("CheckToolName(%q) = %v", name, err)
		}
	}
	if err := CheckToolName("größe"); err == nil || !strings.Contains(err.Error(), "'ö'") {
		t.Errorf("the character is not named: %v", err)
	}
}

// A tool id that two different pairs could make would route a call to another provider's tool.
func FuzzToolID(f *testing.F) {
	f.Add("a.b", "c")
	f.Add("a", "b.c")
	f.Fuzz(func(t *testing.T, pkg, name string) {
		if CheckPackage(pkg) != nil || CheckToolName(name) != nil {
			return
		}
		p, n, ok := NewToolID(pkg, name).Split()
		if !ok || p != pkg || n != name {
			t.Fatalf("%q, %q → %q, %q, %v", pkg, name, p, n, ok)
		}
	})
}

// R3.1: the zero values are the safe ones.
func TestR3_1_ZeroValuesAreSafe(t *testing.T) {
	var o Outcome
	if o.Status != StatusUnknown || o.Delivery != DeliveryUnknown {
		t.Errorf("an unset outcome is %v, %v", o.Status, o.Delivery)
	}
	var e EffectClass
	if e != ExternalSideEffect || !e.Durable() || ReadOnly.Durable() || !SensitiveRead.Durable() {
		t.Error("R7.2: an undeclared effect class is not the strictest")
	}
}

func TestOutcomeJSON(t *testing.T) {
	o := Outcome{Status: Failed, Delivery: NotSent, Effect: EffectNone, Code: CodeDenied, Stage: StageDecision, Retry: NeverRetry, CallID: "01h", Message: "secret", Detail: "secret"}
	got, err := json.Marshal(o)
	want := `{"status":"failed","delivery":"not_sent","effect":"none","code":"denied","stage":"DECISION","retry":"NEVER_RETRY","call":"01h"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	var back Outcome
	if err := json.Unmarshal(got, &back); err != nil || back.Code != o.Code || back.Delivery != o.Delivery {
		t.Errorf("read back %+v, %v", back, err)
	}
	if got, _ := json.Marshal(Outcome{Status: InputRequired, Delivery: Confirmed}); !strings.Contains(string(got), `"completed":false`) {
		t.Errorf("R3.8: %s", got)
	}
}

// R6.10: the list of codes is closed and complete: each has a stage, a retry class and words.
func TestR6_10_Codes(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes() {
		if seen[c.Code] || c.Stage == "" || c.Retry == "" || c.Meaning == "" || c.Exit == ExitOK {
			t.Errorf("%+v is twice in the list, or not complete", c)
		}
		seen[c.Code] = true
	}
	if Code("made_up").Info().Code != CodeInternal {
		t.Error("an unknown code is not internal")
	}
}
