package contract

import (
	"bytes"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLook bounds the body that is looked at: what the SDK takes by default.
const maxLook = 4 << 20

// Handler goes in front of an [mcp.StreamableHTTPHandler] and gives it what [Extensions.Transport] gives to stdio: a look
// at the client's settings by their own bytes. Without it settings such as {"version": 1.0} pass for version 1.
// A body of more than 4 MiB is handed on as it is.
//
// Events do not travel over HTTP: there is no stream that lasts.
func (e *Extensions) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Body == nil {
			h.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxLook+1))
		rest := io.Reader(r.Body)
		if err != nil {
			rest = failing{err}
		} else if len(body) <= maxLook {
			body = cleanMessage(body)
		}
		r2 := r.Clone(r.Context())
		r2.Body = readCloser{io.MultiReader(bytes.NewReader(body), rest), r.Body}
		if len(body) <= maxLook && err == nil {
			r2.ContentLength = int64(len(body))
		}
		h.ServeHTTP(w, r2)
	})
}

// cleanMessage cleans the settings of whichever era the message belongs to.
func cleanMessage(body []byte) []byte {
	body, _ = sanitise(body, "params", "capabilities")
	body, _ = sanitise(body, "params", "_meta", mcp.MetaKeyClientCapabilities)
	return body
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failing hands on why a body could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
