// SPDX-License-Identifier: Apache-2.0

package landscapertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
)

// createDisk is a method of a deployer that stores the ID of a disk before it creates the disk.
func createDisk(ctx context.Context, di *lsv1alpha1.DeployItem, disks map[string]bool) error {
	if di.Status.ProviderStatus == nil {
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.org/v1","kind":"Status","disk":"d1"}`)}
		if err := deployerlib.Checkpoint(ctx); err != nil {
			return err
		}
	}
	disks["d1"] = true
	patch.FromContext(ctx).Annotations().Set("example.org/disk", "d1")
	return nil
}

// A unit test calls the method of a deployer with a context in which Checkpoint and patch.FromContext work.
func ExampleNewUnitCall() {
	item := landscapertest.NewLandscaper(nil, landscapertest.LandscaperOptions{}).Item("default", "disk", "example.org/disk", nil)
	ctx, call := landscapertest.NewUnitCall(context.Background(), item)

	disks := map[string]bool{}
	err := createDisk(ctx, call.Item, disks)
	patched, _ := call.PatchedItem()
	fmt.Println(err, disks, len(call.Checkpoints), patched.Annotations)
	// Output: <nil> map[d1:true] 1 map[example.org/disk:d1]
}

func TestNewUnitCall(t *testing.T) {
	item := func() *lsv1alpha1.DeployItem {
		return landscapertest.NewLandscaper(nil, landscapertest.LandscaperOptions{}).Item("default", "disk", "example.org/disk", nil)
	}
	t.Run("functions that need a call of a deployer work in a unit test [F83]", func(t *testing.T) {
		ctx, call := landscapertest.NewUnitCall(t.Context(), item())
		if !deployerlib.IsFirstCall(ctx) || deployerlib.StoredPhase(ctx) != lsv1alpha1.DeployItemPhases.Init || call.Item.Status.Phase != lsv1alpha1.DeployItemPhases.Init {
			t.Errorf("first %t, stored phase %q, phase %q", deployerlib.IsFirstCall(ctx), deployerlib.StoredPhase(ctx), call.Item.Status.Phase)
		}
		call.Phase, call.First = lsv1alpha1.DeployItemPhases.Progressing, false
		if err := createDisk(ctx, call.Item, map[string]bool{}); err != nil {
			t.Fatal(err)
		}
		if deployerlib.IsFirstCall(ctx) || len(call.Checkpoints) != 1 || call.Checkpoints[0].Phase != lsv1alpha1.DeployItemPhases.Progressing || call.Checkpoints[0].ProviderStatus == nil {
			t.Errorf("checkpoints %+v", call.Checkpoints)
		}
		patched, err := call.PatchedItem()
		if err != nil || patched.Annotations["example.org/disk"] != "d1" || call.Item.Annotations["example.org/disk"] != "" {
			t.Errorf("patched %v, %v", patched, err)
		}
	})
	t.Run("a crash at a checkpoint is simulated by an error [F83]", func(t *testing.T) {
		ctx, call := landscapertest.NewUnitCall(t.Context(), item())
		call.OnCheckpoint = func() error { return deployerlib.ErrSuperseded }
		disks := map[string]bool{}
		if err := createDisk(ctx, call.Item, disks); !errors.Is(err, deployerlib.ErrSuperseded) || len(disks) != 0 || len(call.Checkpoints) != 0 {
			t.Errorf("got %v, disks %v, checkpoints %v", err, disks, call.Checkpoints)
		}
	})
	t.Run("a provider status that cannot be stored is an error, as in a deployer [F83]", func(t *testing.T) {
		ctx, call := landscapertest.NewUnitCall(t.Context(), item())
		call.Item.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind"`)}
		if err := deployerlib.Checkpoint(ctx); err == nil || len(call.Checkpoints) != 0 {
			t.Errorf("Checkpoint(...) = %v, want an error and no checkpoint", err)
		}
	})
	t.Run("an item that is being deleted has the phase InitDelete [F83]", func(t *testing.T) {
		di := item()
		di.DeletionTimestamp, di.Status.JobID, di.Status.Phase = &metav1.Time{}, "1", lsv1alpha1.DeployItemPhases.Deleting
		di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
		ctx, call := landscapertest.NewUnitCall(t.Context(), di)
		if call.Item.Status.Phase != lsv1alpha1.DeployItemPhases.InitDelete || deployerlib.StoredPhase(ctx) != lsv1alpha1.DeployItemPhases.Deleting || deployerlib.IsFirstCall(ctx) {
			t.Errorf("phase %q, stored %q", call.Item.Status.Phase, deployerlib.StoredPhase(ctx))
		}
	})
	t.Run("other contexts do not belong to a call", func(t *testing.T) {
		if err := deployerlib.Checkpoint(t.Context()); !errors.Is(err, deployerlib.ErrNoCall) || contract.IsFinal(deployerlib.StoredPhase(t.Context())) {
			t.Errorf("Checkpoint(...) = %v, want %v", err, deployerlib.ErrNoCall)
		}
	})
}
