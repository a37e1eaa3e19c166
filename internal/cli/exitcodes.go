package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary/call"
)

// exits says what each exit code means, in the order of the numbers. name is the error code of failures that have no
// [call.Code].
var exits = []struct {
	exit    call.Exit
	name    string
	meaning string
}{
	{call.ExitOK, "ok", "ok"},
	{call.ExitFailed, "failed", "failed"},
	{call.ExitUsage, "usage", "usage, configuration or arguments"},
	{call.ExitRefused, "refused", "refused by policy"},
	{call.ExitApprovalPending, "approval_pending", "approval pending"},
	{call.ExitApprovalEnded, "approval_ended", "approval declined or expired"},
	{call.ExitHeld, "held", "drift, quarantine, withheld by the firewall, or a ledger that does not verify"},
	{call.ExitUnauthenticated, "unauthenticated", "not authenticated"},
	{call.ExitProvider, "provider", "provider failed"},
	{call.ExitStore, "store", "store or ledger unavailable"},
	{call.ExitUnknown, "unknown", "outcome unknown: the effect may have happened"},
	{call.ExitToolError, "tool_error", "the tool reported an error"},
	{call.ExitInputRequired, "input_required", "the tool asks for input"},
	{call.ExitDeadline, "deadline", "deadline reached"},
	{call.ExitInterrupted, "interrupted", "interrupted"},
}

func exitName(e call.Exit) string {
	for _, x := range exits {
		if x.exit == e {
			return x.name
		}
	}
	return "failed"
}

func exitMeaning(e call.Exit) string {
	for _, x := range exits {
		if x.exit == e {
			return x.meaning
		}
	}
	return ""
}

// newExitCodesTopic is `ostiary help exit-codes`.
func newExitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit codes of every command, and the error codes of calls that end with them.\n\n")
	for _, x := range exits {
		var codes []string
		for _, c := range call.Codes() {
			if c.Exit == x.exit {
				codes = append(codes, string(c.Code))
			}
		}
		line := fmt.Sprintf("  %3d  %s", x.exit, x.meaning)
		if len(codes) > 0 {
			line += "\n         " + strings.Join(codes, ", ")
		}
		b.WriteString(line + "\n")
	}
	return &cobra.Command{Use: "exit-codes", Short: "The exit codes", Long: strings.TrimRight(b.String(), "\n")}
}
