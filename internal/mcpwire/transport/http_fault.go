package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// fault makes of err what [Carrier] promises: the caller's context error if that ended first, else a [*Fault].
func (x *flight) fault(err error) error {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	if ctxErr := x.caller.Err(); ctxErr != nil {
		return ctxErr
	}
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errHTTPClosed):
		return &Fault{Code: call.CodeProviderLost, Detail: cause.Error()}
	case errors.Is(cause, errBodySlow):
		return &Fault{Code: call.CodeProviderLost, Detail: "too_slow: " + cause.Error()}
	case errors.Is(cause, errNoticeLate):
		return &Fault{Code: call.CodeDeadlineExceeded, Detail: cause.Error()}
	}
	if fe, ok := errors.AsType[*content.FrameError](err); ok {
		if fe.Fault == content.FaultLimit {
			return &Fault{Code: call.CodeResultTooLarge, Detail: fe.Error()}
		}
		return &Fault{Code: call.CodeProtocolError, Detail: fe.Error()}
	}
	switch {
	case errors.Is(err, errEventTooLarge), errors.Is(err, errStreamTooLarge):
		return &Fault{Code: call.CodeResultTooLarge, Detail: err.Error()}
	case errors.Is(err, errAddressBlocked):
		return &Fault{Code: call.CodeProviderRefused, Detail: innermost(err)}
	}
	if reason := tlsReason(err); reason != "" {
		return &Fault{Code: call.CodeProviderLost, Detail: "tls_error: " + reason}
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return &Fault{Code: call.CodeDeadlineExceeded, Detail: "no answer in time: " + quoted(err)}
	}
	if lostConnection(err) {
		return &Fault{Code: call.CodeProviderLost, Detail: quoted(err)}
	}
	if x.sent.seal() {
		return &Fault{Code: call.CodeProviderLost, Detail: quoted(err)}
	}
	// What net/http cannot read. It quotes the peer's bytes, which could be our own credential come back: those stay out.
	reason, _, _ := strings.Cut(quoted(err), `"`)
	return &Fault{Code: call.CodeProtocolError, Detail: "no valid HTTP: " + strings.TrimRight(reason, ": ")}
}

// lostConnection says whether err is that of a connection which ended or never came to be.
func lostConnection(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errStreamEnded) {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
}

// tlsReason names what is wrong with a server's TLS (F-36); "" if it is not that.
func tlsReason(err error) string {
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the certificate has expired or is not yet valid"
		}
		return "the certificate is not valid for this use"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another host"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate is signed by an unknown authority"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate cannot be verified"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS"
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return "the server refused the handshake: " + e.Error()
	}
	if s := innermost(err); strings.HasPrefix(s, "tls: ") { // versions and renegotiation have no type of their own
		return strings.TrimPrefix(s, "tls: ")
	}
	return ""
}

// innermost is the text of the error that err wraps last.
func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || errors.Is(err, errAddressBlocked) && !errors.Is(inner, errAddressBlocked) || inner == errAddressBlocked {
			return quotedText(err.Error())
		}
		err = inner
	}
}

// quoted is an error's text for operators: control characters are escaped and it is short.
func quoted(err error) string { return quotedText(err.Error()) }

func quotedText(s string) string {
	s = strconv.QuoteToASCII(clip(s, 256))
	return strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
}

// NotOffered says whether err is a server's word that it has no standalone stream: 405, or 404 from one that knows no GET.
func NotOffered(err error) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && (f.HTTPStatus == http.StatusMethodNotAllowed || f.HTTPStatus == http.StatusNotFound)
}
