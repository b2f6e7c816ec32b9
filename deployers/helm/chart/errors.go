// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// errSlow is the error for requests to a host that does not answer other requests.
var errSlow = errors.New("the host does not finish earlier requests")

// statusError is the error for an answer of a server with an unexpected status.
type statusError int

// Error returns the number and the meaning of the status, without any text from the server.
func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))))
}

// requestError returns an Error for a failed request to a host. It contains no text from the server, which may contain
// the credential that the server received.
func requestError(path, host, subject string, err error) *Error {
	out := &Error{Path: path}
	if fault, ok := errors.AsType[*Error](err); ok {
		out.Final = fault.Final
	}
	out.Err = fmt.Errorf("%s: %s: %w", host, subject, cause(err))
	return out
}

// cause returns the part of an error that is safe to show to users, in one line.
func cause(err error) error {
	if fault, ok := errors.AsType[*Error](err); ok {
		return fault.Err
	}
	if fault, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return statusError(fault.StatusCode)
	}
	if fault, ok := errors.AsType[statusError](err); ok {
		return fault
	}
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return statusError(http.StatusNotFound)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return statusError(http.StatusUnauthorized)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("timed out: %w", context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("the host answers without TLS, which the operator did not allow for this host")
	case errors.Is(err, errSlow):
		return errSlow
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed early")
	}
	if fault, ok := networkError(err); ok {
		return errors.New(oneLine(fault.Error()))
	}
	return errors.New("the server sent an invalid answer")
}

// networkError returns the part of an error that describes a failed connection.
func networkError(err error) (error, bool) {
	if fault, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fault, true
	}
	if fault, ok := errors.AsType[x509.HostnameError](err); ok {
		return fault, true
	}
	if fault, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return errors.New("tls: " + fault.Msg), true
	}
	if fault, ok := errors.AsType[*net.DNSError](err); ok {
		return fault, true
	}
	if fault, ok := errors.AsType[*net.OpError](err); ok {
		return fault, true
	}
	if fault, ok := errors.AsType[net.Error](err); ok && fault.Timeout() {
		return errors.New("timed out"), true
	}
	return nil, false
}

// oneLine shortens a text, and replaces control characters by spaces.
func oneLine(text string) string {
	const limit = 300
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// readAll reads at most limit bytes. It returns a final error if there are more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, newError("", "the answer has more than %d bytes", limit)
	}
	return data, err
}
