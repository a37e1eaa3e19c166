package content

import "github.com/ostiary/ostiary/call"

// The extensions, as they are named among capabilities; tool-contract also in _meta (R4, R5).
const (
	ToolContract = "org.aurorabot/tool-contract"
	WorldEvents  = "org.aurorabot/world-events"
)

// ContractCode is what a result says of its own effect, where the contract was negotiated (R4.6): contract_unknown if its
// metadata is strictly {"status": "unknown"}, contract_invalid if it is anything else, "" if there is none.
func ContractCode(result []byte) call.Code {
	said := Member(Member(result, "_meta"), ToolContract)
	if said == nil {
		return ""
	}
	n, unknown := 0, false
	for k, v := range Members(said) {
		n++
		s, ok := String(v)
		unknown = ok && k == "status" && s == "unknown"
	}
	if n == 1 && unknown {
		return call.CodeContractUnknown
	}
	return call.CodeContractInvalid
}
