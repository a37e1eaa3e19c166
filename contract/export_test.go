package contract

// Sanitise is for the fuzz test.
func Sanitise(params []byte, path ...string) ([]byte, bool) {
	clean, s := sanitise(params, path...)
	return clean, s.contract
}

// Payload is for the fuzz test.
func Payload(e Event) ([]byte, error) { return e.payload() }
