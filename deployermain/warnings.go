// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// maxWarnings bounds what a WarningLog remembers.
const maxWarnings = 256

// WarningLog logs each warning of the API server once. Landscaper's finalizer
// has a name that current API servers warn about at every write; nothing can
// be done about it here, so it is logged at V(1).
type WarningLog struct {
	log  logr.Logger
	mu   sync.Mutex
	seen map[string]bool
}

var _ rest.WarningHandlerWithContext = (*WarningLog)(nil)

// NewWarningLog writes to log.
func NewWarningLog(log logr.Logger) *WarningLog {
	return &WarningLog{log: log.WithName("api-server"), seen: map[string]bool{}}
}

// HandleWarningHeaderWithContext logs a warning; all but code 299 is ignored, as HTTP has no other left.
func (w *WarningLog) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" || !w.first(text) {
		return
	}
	log := w.log
	if strings.HasPrefix(text, "metadata.finalizers:") {
		log = log.V(1)
	}
	log.Info("warning", "text", text)
}

// first reports whether text is new. It forgets all texts when there are too many.
func (w *WarningLog) first(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[text] {
		return false
	}
	if len(w.seen) >= maxWarnings {
		clear(w.seen)
	}
	w.seen[text] = true
	return true
}
