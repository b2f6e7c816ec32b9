// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
)

// Reason classifies an Error.
type Reason string

// The reasons of errors. All of them are final: the same chart with the same values fails again.
const (
	ReasonChart    Reason = "InvalidChart"       // the files of the chart
	ReasonValues   Reason = "InvalidValues"      // the values, for example according to the schema of the chart
	ReasonVersion  Reason = "KubeVersion"        // the chart does not support the Kubernetes version of the target
	ReasonTemplate Reason = "TemplateFailed"     // a template
	ReasonManifest Reason = "InvalidManifest"    // a document in the output of a template
	ReasonLimit    Reason = "RenderLimit"        // rendering took too long or produced too much output
	ReasonRecord   Reason = "ReleaseRecordLarge" // the record of the release does not fit into a Secret
)

// Error is an error that another attempt with the same chart and values does not resolve.
type Error struct {
	Reason Reason
	// Text describes the error in one line. It does not contain values of the item.
	Text string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// maxText limits the length of the text of an Error, in bytes.
const maxText = 900

// newError returns an Error. It joins the lines of the text and shortens the text if necessary.
func newError(reason Reason, format string, args ...any) *Error {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return &Error{Reason: reason, Text: text}
}
