// SPDX-License-Identifier: Apache-2.0

// Package terminal makes it safe to show texts from untrusted sources to users.
package terminal

import (
	"io"

	"github.com/deployerkit/deployerkit/contract"
)

// NewWriter returns a writer that replaces bidirectional control characters by escape sequences. With such characters,
// a text from a target or an item could look like a different text. The escape sequences are also valid in JSON. A call
// of Write must not split a multi-byte character.
func NewWriter(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct{ to io.Writer }

func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, contract.EscapeBidi(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
