// SPDX-License-Identifier: Apache-2.0

package porting_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/porting"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/patch"
	"github.com/deployerkit/deployerkit/targets"
)

// TestAfter runs the code that docs/porting.md shows.
func TestAfter(t *testing.T) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	pool := targets.NewPool(targets.PoolOptions{})
	defer pool.Close()
	d := &porting.After{
		Client: fake.NewClientBuilder().WithScheme(scheme).Build(),
		Pool:   pool,
		Next: func(context.Context, time.Time, *lsv1alpha1.DeployItem) (*time.Time, error) {
			return nil, nil
		},
	}
	newItem := func() *lsv1alpha1.DeployItem {
		return &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item", UID: "uid"}}
	}
	t.Run("the ported deployer can be added", func(t *testing.T) {
		for _, err := range []error{
			porting.Add(logr.Discard(), nil, nil, d),
			porting.AddClassic(logr.Discard(), nil, nil, &porting.Manifest{}),
		} {
			if err == nil {
				t.Error("got no error without a manager")
			}
		}
	})
	t.Run("the ported deployer registers hooks with and without a logger [F45]", func(t *testing.T) {
		hooks := deployerlib.Port(d, nil).ExtensionHooks()
		if hooks.Validate() != nil || len(hooks[extension.BeforeDeleteHook]) != 1 || len(hooks[extension.ShouldReconcileHook]) != 1 {
			t.Errorf("%v, %v", hooks, hooks.Validate())
		}
	})
	t.Run("the library writes the status of the ported deployer [F44]", func(t *testing.T) {
		di, notes := newItem(), &patch.Patch{}
		d.Annotate(patch.NewContext(t.Context(), notes))
		if err := d.Status(di); err != nil || di.Status.Phase != "Succeeded" || notes.IsEmpty() {
			t.Errorf("phase %q, patch empty %t, %v", di.Status.Phase, notes.IsEmpty(), err)
		}
		if err := d.ProviderStatus(di, map[string]string{"disk": "d1"}); err != nil || di.Status.ProviderStatus == nil {
			t.Errorf("provider status %v, %v", di.Status.ProviderStatus, err)
		}
	})
	t.Run("the ported deployer writes an export [F44]", func(t *testing.T) {
		di := newItem()
		if err := d.Export(t.Context(), di); err != nil {
			t.Fatal(err)
		}
		if err := d.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: di.Status.ExportReference.Name}, &corev1.Secret{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("the ported deployer rejects a Target that is not a cluster [F44]", func(t *testing.T) {
		if err := d.Ready(t.Context(), lsv1alpha1.NewResolvedTarget(&lsv1alpha1.Target{})); err == nil {
			t.Error("no error")
		}
	})
}
