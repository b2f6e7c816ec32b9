// SPDX-License-Identifier: Apache-2.0

// Package terminal writes texts of others for people.
package terminal

import (
	"io"

	"github.com/deployerkit/deployerkit/contract"
)

// Writer returns a writer that shows bidirectional control characters as escapes, which are valid in JSON too. Texts of
// targets and items may hold them, and look like other texts then. Each call of Write needs whole characters.
func Writer(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct{ to io.Writer }

func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, contract.EscapeBidi(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
