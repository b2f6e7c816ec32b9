// SPDX-License-Identifier: Apache-2.0

// Package terminal writes texts of others for users.
package terminal

import (
	"io"

	"github.com/deployerkit/deployerkit/contract"
)

// Writer returns a writer that replaces bidirectional control characters by escape sequences, which are also valid in
// JSON. Texts of targets and items may contain them to look like other texts. Each call of Write must contain whole
// characters.
func Writer(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct{ to io.Writer }

func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, contract.EscapeBidi(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
