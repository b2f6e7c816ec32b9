// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"io"

	"github.com/deployerkit/deployerkit/contract"
)

// logWriter writes the lines of the log. Texts of targets may be in them, so bidirectional control characters become
// escapes, which are valid in JSON too.
type logWriter struct{ to io.Writer }

func (w *logWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, contract.EscapeBidi(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
