// SPDX-License-Identifier: Apache-2.0

package disks

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

func TestResumedItemIsTriggeredAndForced(t *testing.T) {
	cloud := NewCloud()
	if _, err := cloud.EnsureDisk("d1", "eu", 10); err != nil {
		t.Fatal(err)
	}
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = "default", "mine"
	if err := deployerlib.SetProviderStatus(di, Status{DiskID: "d1"}, statusKind); err != nil {
		t.Fatal(err)
	}
	var woken []types.NamespacedName
	restarted := New(cloud)
	rt := deployerlib.Runtime{Trigger: func(item types.NamespacedName) { woken = append(woken, item) }}
	if err := restarted.UseRuntime(rt); err != nil {
		t.Fatal(err)
	}
	if err := restarted.Resume(t.Context(), di, nil); err != nil {
		t.Fatal(err)
	}
	if res, err := restarted.handleLostDisk(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook); res != nil || err != nil {
		t.Errorf("hook with an existing disk: got %v, %v, want nil", res, err)
	}
	cloud.RemoveAll()
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "default", Name: "mine"}}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	res, err := restarted.handleLostDisk(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook)
	if err != nil || res == nil || res.AbortReconcile {
		t.Errorf("hook with a lost disk: got %v, %v, want a forced run", res, err)
	}
}
