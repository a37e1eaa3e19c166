package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
)

// failure is an error that knows its exit code and what to do.
type failure struct {
	exit    call.Exit
	code    string // for --json; "" : the name of the exit code
	message string
	hint    string
	cause   error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

// usage is a fault of the command line itself.
func usage(hint, format string, args ...any) error {
	return fail(call.ExitUsage, hint, format, args...)
}

// fail makes a failure; a %w in the format gives its cause.
func fail(exit call.Exit, hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &failure{exit: exit, message: err.Error(), hint: hint, cause: errors.Unwrap(err)}
}

// report prints an error in the one style of all commands and gives its exit code.
func (a *app) report(ctx context.Context, err error, args []string) call.Exit {
	f := a.judge(ctx, err)
	if wantsJSON(args) {
		code := f.code
		if code == "" {
			code = exitName(f.exit)
		}
		a.printErrorJSON(code, f.message, f.hint)
		return f.exit
	}
	if f.message != "" {
		for i, line := range strings.Split(strings.TrimRight(f.message, "\n"), "\n") {
			prefix := "ostiary: "
			if i > 0 {
				prefix = "  "
			}
			fmt.Fprintln(a.err, prefix+clean(line))
		}
	}
	if f.hint != "" {
		fmt.Fprintln(a.err, "hint: "+clean(f.hint))
	}
	return f.exit
}

// judge finds the exit code of an error. The order matters: what a person did to the command comes first.
func (a *app) judge(ctx context.Context, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok && f.exit != call.ExitFailed {
		return f
	}
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) || errors.Is(cause, errTerminated) {
		return &failure{exit: call.ExitInterrupted, message: cause.Error()}
	}
	if faults, ok := errors.AsType[config.Faults](err); ok {
		return &failure{exit: call.ExitUsage, code: "config", message: renderFaults(faults)}
	}
	if _, ok := errors.AsType[*failure](err); !ok {
		if f := refusal(err); f != nil {
			return f
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &failure{exit: call.ExitDeadline, message: err.Error()}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if !a.ran { // the command line library itself refused something
		return &failure{exit: call.ExitUsage, message: err.Error(), hint: "see ostiary --help"}
	}
	return &failure{exit: call.ExitFailed, message: err.Error()}
}

// refusals say how a command ends when the gateway refuses an operation.
var refusals = map[ostiary.Fault]struct {
	exit call.Exit
	hint string
}{
	ostiary.FaultAmbiguous:   {call.ExitUsage, "ostiary tools lists what there is"},
	ostiary.FaultNotFound:    {call.ExitFailed, ""},
	ostiary.FaultDecided:     {call.ExitFailed, "look at it again: somebody was there first"},
	ostiary.FaultOver:        {call.ExitApprovalEnded, ""},
	ostiary.FaultNotEntitled: {call.ExitRefused, "nobody decides on a call of their own, and one from the command line is the operator's"},
	ostiary.FaultInvalid:     {call.ExitUsage, ""},
	ostiary.FaultLocked:      {call.ExitStore, ""}, // the error says where the key was looked for, and what to do
	ostiary.FaultNoVault:     {call.ExitStore, "make one with ostiary vault init"},
	ostiary.FaultDamaged:     {call.ExitStore, ""},
}

// refusal is the failure for an error that has a kind; nil for any other.
func refusal(err error) *failure {
	kind := ostiary.FaultOf(err)
	r, ok := refusals[kind]
	if !ok {
		return nil
	}
	return &failure{exit: r.exit, code: string(kind), message: err.Error(), hint: r.hint, cause: err}
}

// renderFaults prints every fault of a configuration with its hint below it.
func renderFaults(faults config.Faults) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintln(&b, f.Error())
		if f.Hint != "" {
			fmt.Fprintln(&b, "  hint: "+f.Hint)
		}
	}
	return b.String()
}

// wantsJSON says whether errors are wanted as JSON; the flags may not have been parsed when they are wrong themselves.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
