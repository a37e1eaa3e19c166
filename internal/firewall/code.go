package firewall

// Code names what was found. The list is closed; docs/FIREWALL.md shows it.
type Code string

// CodeInfo is what a code means and does.
type CodeInfo struct {
	Code        Code
	Class       Class
	Sensitivity Sensitivity
	Result      Action // in results and texts, unless a rule says otherwise
	Argument    Action // in arguments, unless a rule says otherwise
	Meaning     string
}

// The codes that more than one file names; the rest stand beside their inspector.
const (
	CodeDetectorFailed  Code = "detector_failed"
	CodeBudgetExhausted Code = "budget_exhausted"
	CodeTimedOut        Code = "timed_out"

	CodeNotJSON       Code = "not_json"
	CodeShape         Code = "shape"
	CodeTooDeep       Code = "too_deep"
	CodeTooLarge      Code = "too_large"
	CodeTooManyBlocks Code = "too_many_blocks"
	CodeTextTooLong   Code = "text_too_long"
	CodeSchema        Code = "output_schema"
	CodeNoStructured  Code = "no_structured_content"
)

var codes = []CodeInfo{
	{CodeNotJSON, ClassShape, SensitivityNone, Reject, Reject, "It cannot be read as one strict JSON value."},
	{CodeShape, ClassShape, SensitivityNone, Reject, Reject, "It is not an object, or its content is not a list of blocks."},
	{CodeTooDeep, ClassShape, SensitivityNone, Reject, Reject, "It is nested deeper than the bound."},
	{CodeTooLarge, ClassSize, SensitivityNone, Quarantine, Quarantine, "It has more bytes than the bound."},
	{CodeTooManyBlocks, ClassSize, SensitivityNone, Quarantine, Quarantine, "It has more content blocks than the bound."},
	{CodeTextTooLong, ClassSize, SensitivityNone, Quarantine, Quarantine, "One string of it is longer than the bound."},
	{CodeSchema, ClassOutputSchema, SensitivityNone, Quarantine, Quarantine, "structuredContent does not satisfy the tool's output schema."},
	{CodeNoStructured, ClassOutputSchema, SensitivityNone, Quarantine, Quarantine, "The tool has an output schema, and its success has no structuredContent."},
	{CodeKindNotAdmitted, ClassContentKind, SensitivityNone, Quarantine, Quarantine, "A content block is of a kind that the profile does not admit (R3.7)."},
	{CodeMIMEMismatch, ClassContentKind, SensitivityNone, Quarantine, Quarantine, "The bytes of an artefact are not of the type that its mimeType says."},
	{CodeExecutable, ClassContentKind, SensitivityNone, Quarantine, Quarantine, "The bytes of an artefact are a program."},
	{CodeBadBase64, ClassContentKind, SensitivityNone, Quarantine, Quarantine, "The data of an artefact is not base64."},
	{CodeEmbeddedText, ClassContentKind, SensitivityNone, Accept, Accept, "A picture, a sound or another artefact carries words in its bytes, as in metadata; they are inspected too."},
	{CodeMismatch, ClassMismatch, SensitivityNone, Ask, Ask, "The text and structuredContent of a result say different things (A-25)."},

	{CodeHiddenTags, ClassHiddenText, SensitivityNone, Redact, Ask, "Unicode tag characters: text for machines only. The excerpt has it decoded."},
	{CodeHiddenBidi, ClassHiddenText, SensitivityNone, Redact, Accept, "Bidirectional overrides, embeddings or isolates: the text reads differently from what it is."},
	{CodeHiddenZeroWidth, ClassHiddenText, SensitivityNone, Redact, Accept, "Zero-width characters where no script needs them."},
	{CodeHiddenVariation, ClassHiddenText, SensitivityNone, Redact, Ask, "Variation selectors that select nothing: bytes may be hidden in them. The excerpt has them decoded."},
	{CodeHiddenFiller, ClassHiddenText, SensitivityNone, Redact, Accept, "Soft hyphens, Hangul fillers and other characters that are drawn as nothing."},
	{CodeHiddenPrivateUse, ClassHiddenText, SensitivityNone, Redact, Accept, "Private-use characters or non-characters."},
	{CodeHiddenANSI, ClassHiddenText, SensitivityNone, Redact, Accept, "Terminal escape sequences (A-10)."},
	{CodeHiddenControl, ClassHiddenText, SensitivityNone, Redact, Accept, "Control characters other than tab and line ends."},

	{CodeOverride, ClassInstruction, SensitivityNone, Quarantine, Accept, "Tells its reader to drop, replace or ignore instructions."},
	{CodeConcealment, ClassInstruction, SensitivityNone, Quarantine, Accept, "Tells its reader to keep something from the user."},
	{CodeExfiltration, ClassInstruction, SensitivityNone, Quarantine, Accept, "Tells its reader to read, pass on or send secrets, files or the conversation."},
	{CodeRouting, ClassInstruction, SensitivityNone, Quarantine, Accept, "Tells its reader to use other tools or to run something."},
	{CodeRoleMarker, ClassInstruction, SensitivityNone, Quarantine, Accept, "Poses as the system, the user or a tool call (A-19)."},
	{CodeFakeApproval, ClassInstruction, SensitivityNone, Quarantine, Accept, "Says that somebody approved something (A-19)."},
	{CodeFalseError, ClassInstruction, SensitivityNone, Quarantine, Accept, "An error that asks for more than the call needed (A-18)."},
	{CodePreference, ClassInstruction, SensitivityNone, Quarantine, Accept, "Praises itself over other tools (A-09)."},
	{CodeAddressed, ClassInstruction, SensitivityNone, Quarantine, Accept, "Speaks to the model and not to the user."},
	{CodeCredentialAsked, ClassInstruction, SensitivityNone, Quarantine, Accept, "Asks for a password, a token or the like (A-26)."},
	{CodeMarkupHidden, ClassInstruction, SensitivityNone, Quarantine, Accept, "Instructions in a part of markup that is not drawn (A-12)."},

	{CodePrivateKey, ClassCredential, CredentialLike, Quarantine, Quarantine, "A private key."},
	{CodeProviderToken, ClassCredential, CredentialLike, Quarantine, Quarantine, "A token of a form that a service gives out."},
	{CodeJWT, ClassCredential, CredentialLike, Quarantine, Quarantine, "A signed JSON web token."},
	{CodeAuthHeader, ClassCredential, CredentialLike, Quarantine, Quarantine, "An Authorization header with its credential."},
	{CodeURLPassword, ClassCredential, CredentialLike, Quarantine, Quarantine, "An address with a password in it."},
	{CodeAssignedSecret, ClassCredential, CredentialLike, Quarantine, Quarantine, "A value that is named a password, key, token or secret, and looks like one."},
	{CodeKnownRule, ClassCredential, CredentialLike, Quarantine, Quarantine, "A secret by one of the rules of gitleaks."},

	{CodeEmail, ClassPersonalData, UserPrivate, Accept, Accept, "An e-mail address."},
	{CodePhone, ClassPersonalData, UserPrivate, Accept, Accept, "A telephone number."},
	{CodeCard, ClassPersonalData, Regulated, Quarantine, Ask, "A payment card number (issuer range and check digit)."},
	{CodeIBAN, ClassPersonalData, Regulated, Quarantine, Ask, "A bank account number (IBAN, check digits)."},
	{CodeChineseID, ClassPersonalData, Regulated, Quarantine, Ask, "A Chinese identity number (date and check digit)."},
	{CodeSSN, ClassPersonalData, Regulated, Quarantine, Ask, "A US social security number, named as one."},

	{CodeLinkExfiltration, ClassLink, SensitivityNone, Redact, Ask, "An address that a client would fetch by itself, or that carries a long payload (A-22)."},
	{CodeLinkRemoteImage, ClassLink, SensitivityNone, Accept, Accept, "A picture from elsewhere that a client may fetch by itself."},
	{CodeLinkFile, ClassLink, SensitivityNone, Accept, Accept, "A resource of the file system."},
	{CodeLinkSensitiveFile, ClassLink, SensitivityNone, Quarantine, Quarantine, "A resource that is a file of keys, accounts or the system (A-23)."},
	{CodeLinkMetadata, ClassLink, SensitivityNone, Quarantine, Reject, "An address of a cloud's metadata service (A-23)."},
	{CodeLinkScript, ClassLink, SensitivityNone, Redact, Ask, "An address that runs (javascript:, vbscript:, data:text/html)."},

	{CodePathTraversal, ClassArgument, SensitivityNone, Accept, Reject, "A path that climbs with '..' (A-28)."},
	{CodeLeadingDash, ClassArgument, SensitivityNone, Accept, Reject, "A value that a program would take for an option (A-28)."},
	{CodeControlInPath, ClassArgument, SensitivityNone, Accept, Reject, "A NUL or a line end in a path or name."},
	{CodeOpaquePayload, ClassArgument, SensitivityUnknown, Accept, Ask, "A long run of encoded bytes where none is expected (A-29)."},

	{CodeSensitivePath, ClassDefinition, SensitivityNone, Quarantine, Accept, "A definition that names a file of keys or accounts (A-01)."},
	{CodeOtherTool, ClassDefinition, SensitivityNone, Quarantine, Accept, "A definition that names a tool of another provider (A-07)."},
	{CodeLongName, ClassDefinition, SensitivityNone, Quarantine, Accept, "A name or an enumerated value that is too long, or a sentence (A-02)."},
	{CodeBlankRun, ClassDefinition, SensitivityNone, Quarantine, Accept, "A long run of blanks or empty lines with text after it (A-12)."},
	{CodeMarkup, ClassDefinition, SensitivityNone, Quarantine, Accept, "Markup that hides text: comments, folded parts, invisible styles (A-12)."},
	{CodeEncodedBlob, ClassDefinition, SensitivityUnknown, Quarantine, Accept, "A long run of encoded bytes in a definition (A-01)."},
	{CodeAskedParameter, ClassDefinition, SensitivityNone, Quarantine, Accept, "A parameter that asks for the conversation, the prompt or the list of tools (A-14)."},
	{CodeMixedScript, ClassDefinition, SensitivityNone, Quarantine, Accept, "A name of look-alike letters from several scripts (A-08)."},

	{CodeExternalRef, ClassDefinition, SensitivityNone, Quarantine, Accept, "A schema that refers to another document (A-15)."},
	{CodeMirroredSecret, ClassDefinition, SensitivityNone, Quarantine, Accept, "A parameter that is a secret by its name is mirrored into a header, which those in between may write down (A-62)."},

	{CodeDetectorFailed, ClassDetector, SensitivityUnknown, Quarantine, Quarantine, "An inspector failed (F-57)."},
	{CodeBudgetExhausted, ClassDetector, SensitivityUnknown, Quarantine, Quarantine, "Inspecting it would cost more than its size allows (F-58)."},
	{CodeTimedOut, ClassDetector, SensitivityUnknown, Quarantine, Quarantine, "The time for inspecting ran out (F-57)."},
}

var codeIndex = func() map[Code]*CodeInfo {
	m := make(map[Code]*CodeInfo, len(codes))
	for i := range codes {
		m[codes[i].Code] = &codes[i]
	}
	return m
}()

// Codes lists every code.
func Codes() []CodeInfo { return codes }

// Info is what c means. An unknown code is described as [CodeDetectorFailed].
func (c Code) Info() CodeInfo {
	if i, ok := codeIndex[c]; ok {
		return *i
	}
	return *codeIndex[CodeDetectorFailed]
}
