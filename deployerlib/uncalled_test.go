// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// threeMethods is a deployer for Landscaper's library since v0.53.
type threeMethods struct{}

func (threeMethods) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (threeMethods) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (threeMethods) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// oldMethods also has methods of older versions, one of them with another signature.
type oldMethods struct{ threeMethods }

func (oldMethods) ForceReconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (oldMethods) ExtensionHooks() map[string]any { return nil }

func TestStartReportsUncalledMethods(t *testing.T) {
	for name, test := range map[string]struct {
		deployer PortedDeployer
		want     []string
	}{
		"a deployer without other methods":                    {threeMethods{}, nil},
		"ForceReconcile, and ExtensionHooks with other types": {oldMethods{}, []string{"ForceReconcile", "ExtensionHooks"}},
	} {
		t.Run("the start reports the methods that are never called: "+name+" [F84]", func(t *testing.T) {
			reporter, ok := findOptional[interface{ describeUncalledMethods() []string }](Port(test.deployer, nil))
			if !ok {
				t.Fatal("Add does not find the report")
			}
			got := reporter.describeUncalledMethods()
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]+" of the ported deployer is never called") {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}
