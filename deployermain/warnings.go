// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// maxWarnings is the maximum number of warnings that a WarningLog remembers.
const maxWarnings = 256

// WarningLog logs each warning of the API server once. Current API servers warn about the name of Landscaper's
// finalizer at every write. WarningLog logs this warning at V(1), because a deployer cannot change the name.
type WarningLog struct {
	log  logr.Logger
	mu   sync.Mutex
	seen map[string]bool
}

var _ rest.WarningHandlerWithContext = (*WarningLog)(nil)

// NewWarningLog returns a WarningLog that writes to the given log.
func NewWarningLog(log logr.Logger) *WarningLog {
	return &WarningLog{log: log.WithName("api-server"), seen: map[string]bool{}}
}

// HandleWarningHeaderWithContext logs a warning. It ignores all codes except 299, which is the only one in use.
func (w *WarningLog) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" || !w.addIfNew(text) {
		return
	}
	log := w.log
	if strings.HasPrefix(text, "metadata.finalizers:") {
		log = log.V(1)
	}
	log.Info("warning", "text", text)
}

// addIfNew reports whether a text is new. If too many texts are stored, it removes all of them.
func (w *WarningLog) addIfNew(text string) bool {
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
