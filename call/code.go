package call

// Stage is where on the path a call ended (R6.10).
type Stage string

// The stages of R6.10.
const (
	StageDiscovery    Stage = "DISCOVERY"
	StageRequestBuild Stage = "REQUEST_BUILD"
	StageProviderCall Stage = "PROVIDER_CALL"
	StageStreaming    Stage = "STREAMING"
	StageFirewall     Stage = "FIREWALL"
	StageApproval     Stage = "APPROVAL"
	StageDecision     Stage = "DECISION"
)

// Retry says who may try again, and when (R6.10). The runtime itself never does (R3.3).
type Retry string

// The retry classes of R6.10.
const (
	NeverRetry          Retry = "NEVER_RETRY"
	SafeRetry           Retry = "SAFE_RETRY"
	RetryAfterReview    Retry = "RETRY_AFTER_REVIEW"
	RediscoveryRequired Retry = "PROVIDER_REDISCOVERY_REQUIRED"
)

// Exit is a process exit code of the command line; `ostiary help exit-codes` prints them.
type Exit int

// The exit codes. Each error code has one.
const (
	ExitOK              Exit = 0
	ExitFailed          Exit = 1
	ExitUsage           Exit = 2
	ExitRefused         Exit = 3
	ExitApprovalPending Exit = 4
	ExitApprovalEnded   Exit = 5
	ExitHeld            Exit = 6
	ExitUnauthenticated Exit = 7
	ExitProvider        Exit = 8
	ExitStore           Exit = 9
	ExitUnknown         Exit = 10
	ExitToolError       Exit = 11
	ExitInputRequired   Exit = 12
	ExitDeadline        Exit = 124
	ExitInterrupted     Exit = 130
)

// Code names why a call did not simply succeed. The list is closed; docs/ERRORS.md is generated from it.
type Code string

// The error codes, in the order of the path of a call.
const (
	CodeUnauthenticated     Code = "unauthenticated"
	CodeInvalidRequest      Code = "invalid_request"
	CodeOverloaded          Code = "overloaded"
	CodeProviderUnavailable Code = "provider_unavailable"
	CodeToolNotAllowed      Code = "tool_not_allowed"
	CodeInvalidArguments    Code = "invalid_arguments"
	CodeDenied              Code = "denied"
	CodeBudgetExceeded      Code = "budget_exceeded"
	CodeScopeInvalid        Code = "scope_invalid"
	CodeFrontierRequired    Code = "frontier_required"
	CodeFrontierUnknown     Code = "frontier_unknown"
	CodeStaleFrontier       Code = "stale_frontier"
	CodeBlockedArguments    Code = "blocked_arguments"
	CodeApprovalPending     Code = "approval_pending"
	CodeApprovalDeclined    Code = "approval_declined"
	CodeApprovalExpired     Code = "approval_expired"
	CodeSchemaDrift         Code = "schema_drift"
	CodeLedgerUnavailable   Code = "ledger_unavailable"
	CodeProviderError       Code = "provider_error"
	CodeProviderLost        Code = "provider_lost"
	CodeProviderRefused     Code = "provider_refused"
	CodeProtocolError       Code = "protocol_error"
	CodeResultInvalid       Code = "result_invalid"
	CodeResultTooLarge      Code = "result_too_large"
	CodeContractInvalid     Code = "contract_invalid"
	CodeContractUnknown     Code = "contract_unknown"
	CodeUnsupportedContent  Code = "unsupported_content"
	CodeInputRequired       Code = "input_required"
	CodeToolError           Code = "tool_error"
	CodeDeadlineExceeded    Code = "deadline_exceeded"
	CodeCancelled           Code = "cancelled"
	CodeWithheld            Code = "withheld"
	CodeInterrupted         Code = "interrupted"
	CodeInternal            Code = "internal"
)

// CodeInfo is what a code means, wherever it is shown.
type CodeInfo struct {
	Code    Code
	Stage   Stage
	Retry   Retry // the retry class if the request was not sent, or a definite answer came
	Exit    Exit
	Meaning string // one sentence for the documentation
	Advice  string // one sentence for a model or a person: what to do
}

var codes = []CodeInfo{
	{CodeUnauthenticated, StageDecision, NeverRetry, ExitUnauthenticated, "The caller showed no valid credential.", "Send a valid bearer token."},
	{CodeInvalidRequest, StageRequestBuild, NeverRetry, ExitUsage, "The request is not well formed.", "Correct the request."},
	{CodeOverloaded, StageRequestBuild, SafeRetry, ExitFailed, "A bound on concurrent or waiting calls was reached before anything was sent.", "Wait and repeat the call."},
	{CodeProviderUnavailable, StageDiscovery, RediscoveryRequired, ExitProvider, "The provider is not active: it did not start, waits for admission, is disabled, quarantined, or its connection ended.", "Tell the operator; the tool cannot be used until the provider is active."},
	{CodeToolNotAllowed, StageDecision, NeverRetry, ExitRefused, "The tool does not exist here, is not allowed, or is not available.", "Use a tool that is listed."},
	{CodeInvalidArguments, StageRequestBuild, SafeRetry, ExitUsage, "The arguments do not satisfy the tool's input schema.", "Correct the arguments and call again."},
	{CodeDenied, StageDecision, NeverRetry, ExitRefused, "Policy does not let this caller use the tool so.", "Do not repeat the call; ask the operator if it should be possible."},
	{CodeBudgetExceeded, StageDecision, RetryAfterReview, ExitRefused, "The caller has used up what it may call in a while, or repeats one call without end.", "Stop, and look whether the call is needed at all; later it can be made again."},
	{CodeScopeInvalid, StageDecision, NeverRetry, ExitUsage, "A scope of the tool could not be resolved from the arguments.", "Give the arguments that the tool's scopes name, as text or integers."},
	{CodeFrontierRequired, StageDecision, RetryAfterReview, ExitRefused, "Calls of this tool must state the frontier that they are based on.", "Read the scopes of the tool, and state in _meta[\"org.ostiary/frontier\"] up to where."},
	{CodeFrontierUnknown, StageDecision, NeverRetry, ExitUsage, "The frontier claims more commits than there are: it is that of another data directory.", "Forget the frontier, read the scopes again, then decide again."},
	{CodeStaleFrontier, StageDecision, RetryAfterReview, ExitRefused, "The call is based on facts that have moved on.", "Read what was missed, then decide again."},
	{CodeBlockedArguments, StageFirewall, NeverRetry, ExitHeld, "The arguments hold something that may not leave.", "Take it out of the arguments."},
	{CodeApprovalPending, StageApproval, RetryAfterReview, ExitApprovalPending, "The call waits for someone to agree.", "Wait until it has been approved, then repeat exactly the same call."},
	{CodeApprovalDeclined, StageApproval, NeverRetry, ExitApprovalEnded, "Someone declined the call.", "Do not repeat the call."},
	{CodeApprovalExpired, StageApproval, RetryAfterReview, ExitApprovalEnded, "Nobody agreed in time.", "Ask again if it is still wanted."},
	{CodeSchemaDrift, StageDiscovery, RediscoveryRequired, ExitHeld, "The tool is not the one that was admitted.", "Tell the operator; the change must be reviewed first."},
	{CodeLedgerUnavailable, StageDecision, SafeRetry, ExitStore, "The call could not be recorded, so it was not let through, or its result was not released.", "Tell the operator; calls go on when the ledger can be written."},
	{CodeProviderError, StageProviderCall, NeverRetry, ExitProvider, "The provider answered with a definite refusal.", "Correct the call; the provider did nothing."},
	{CodeProviderLost, StageProviderCall, RetryAfterReview, ExitUnknown, "The connection to the provider ended before an answer came.", "Find out whether the effect took place before calling again."},
	{CodeProviderRefused, StageProviderCall, RetryAfterReview, ExitProvider, "The provider's HTTP endpoint did not take the request.", "Tell the operator."},
	{CodeProtocolError, StageStreaming, RetryAfterReview, ExitUnknown, "The provider's answer broke the protocol.", "Find out whether the effect took place before calling again."},
	{CodeResultInvalid, StageStreaming, RetryAfterReview, ExitUnknown, "The provider's result is of a shape or type that was not negotiated.", "Find out whether the effect took place before calling again."},
	{CodeResultTooLarge, StageStreaming, RetryAfterReview, ExitUnknown, "The provider's answer is larger than the bound.", "Ask for less; find out whether the effect took place before calling again."},
	{CodeContractInvalid, StageStreaming, RetryAfterReview, ExitUnknown, "The tool-contract metadata of the result is not valid.", "Find out whether the effect took place before calling again."},
	{CodeContractUnknown, StageProviderCall, RetryAfterReview, ExitUnknown, "The tool itself says that it does not know whether its effect took place.", "Find out whether the effect took place before calling again."},
	{CodeUnsupportedContent, StageFirewall, NeverRetry, ExitHeld, "The result has a content kind that the provider's policy does not admit.", "The call was carried out; its content is not shown."},
	{CodeInputRequired, StageProviderCall, RetryAfterReview, ExitInputRequired, "The provider asks for input before it goes on; the call is not completed.", "The input cannot be given here; tell the user."},
	{CodeToolError, StageProviderCall, NeverRetry, ExitToolError, "The tool reported an error of its own.", "Read the tool's message."},
	{CodeDeadlineExceeded, StageProviderCall, RetryAfterReview, ExitDeadline, "The time for the call ran out.", "Find out whether the effect took place before calling again."},
	{CodeCancelled, StageProviderCall, RetryAfterReview, ExitInterrupted, "The caller cancelled the call.", "Find out whether the effect took place before calling again."},
	{CodeWithheld, StageFirewall, RetryAfterReview, ExitHeld, "The result was not let in.", "The call was carried out; its result waits for review."},
	{CodeInterrupted, StageProviderCall, RetryAfterReview, ExitUnknown, "The gateway stopped while the call was open.", "Find out whether the effect took place before calling again."},
	{CodeInternal, StageRequestBuild, RetryAfterReview, ExitFailed, "A fault of the gateway itself.", "Tell the operator; the log has the call's id."},
}

var codeIndex = func() map[Code]CodeInfo {
	m := make(map[Code]CodeInfo, len(codes))
	for _, c := range codes {
		m[c.Code] = c
	}
	return m
}()

// Codes lists every error code in the order of the path.
func Codes() []CodeInfo { return codes }

// Info is what c means. An unknown code is described as [CodeInternal].
func (c Code) Info() CodeInfo {
	if i, ok := codeIndex[c]; ok {
		return i
	}
	return codeIndex[CodeInternal]
}
