// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// isolate changes global state of the process for the duration of a test, so that runs are independent of each other:
//
//   - The jitter of client-go uses the global random numbers of package math/rand. Without the GODEBUG setting, a
//     program cannot seed them.
//   - The error handlers of client-go sleep until a global time has passed, which belongs to another bubble.
//   - klog would print what the processes do.
//
// Tests that change the environment cannot run in parallel, which is necessary here.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",randseednop=0", ","))
	percent := debug.SetGCPercent(400) // each run is short and leaves nothing behind
	handlers, state := utilruntime.ErrorHandlers, klog.CaptureState()
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	t.Cleanup(func() {
		utilruntime.ErrorHandlers = handlers
		state.Restore()
		debug.SetGCPercent(percent)
	})
}

// seedGlobal seeds the global random numbers.
func seedGlobal(seed uint64) {
	rand.Seed(int64(seed)) //nolint:staticcheck,gosec // client-go uses the global numbers; the conversion only loses the sign
}
