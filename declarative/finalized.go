// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"encoding/json"
	"maps"
)

// fieldFinalized notes, beside the inventory, that the handler has cleaned up.
const fieldFinalized = "finalized"

// finalized tells whether Finalize said that it is done: it is not called again while the children go.
func (s *providerStatus) finalized() bool { return string(s.more[fieldFinalized]) == "true" }

// finalize notes that Finalize is done.
func (s *providerStatus) finalize() {
	more := maps.Clone(s.more)
	if more == nil {
		more = map[string]json.RawMessage{}
	}
	more[fieldFinalized] = json.RawMessage("true")
	s.more = more
}
