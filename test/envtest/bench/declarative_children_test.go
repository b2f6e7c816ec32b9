// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
)

// TestManyChildren deploys an item with 1000 children. The deployer has one worker. Then the test runs five jobs
// without a change. It requires that these jobs send no requests to the target, and logs their median duration.
func TestManyChildren(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, cp.Stop()) })
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	e := newHandled()
	e.workers, e.children = 1, 1000
	must(t, e.createAndStart(t.Context(), cp, 1))
	t.Cleanup(func() { must(t, e.stop()) })
	installed, err := e.run(t.Context(), 0, e.items)
	must(t, err)

	before := sumRequests(e.target.Snapshot())
	var took []time.Duration
	for i := range 5 {
		lap, err := e.run(t.Context(), changedLeg+1+i, e.items)
		must(t, err)
		took = append(took, lap.took)
	}
	if calls := sumRequests(e.target.Snapshot()) - before; calls > 0 || before < e.children {
		t.Errorf("%d calls to the target without a change, and %d for the installation of %d children", calls, before, e.children)
	}
	slices.Sort(took)
	t.Logf("installed in %s; nothing to do: %s (%s to %s)", installed.took, took[2], took[0], took[4])
}
