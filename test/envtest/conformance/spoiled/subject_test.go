// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newFaultInjector returns the fault injector for a process. It may ask found whether an item already existed when the
// process started. If a newFaultInjector is nil, nothing is spoiled.
type newFaultInjector func(found func(di item) bool) *faultInjector

// start returns a function that runs the deployer for items of the given type. The function `spoil` returns the spoiler
// of this deployer.
func start(kind lsv1alpha1.DeployItemType, spoil newFaultInjector) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		scheme, err := landscapertest.Scheme()
		if err != nil {
			return err
		}
		live, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
		if err != nil {
			return err
		}
		found, err := newExistingFilter(ctx, live)
		if err != nil {
			return err
		}
		d := &deployer{client: live, kind: kind}
		if spoil != nil {
			d.client = spoil(found).client(live)
		}
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return err
		}
		if err := ctrl.NewControllerManagedBy(mgr).Named("spoiled").For(&lsv1alpha1.DeployItem{}).Complete(d); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// newExistingFilter returns a function that reports whether an item existed when newExistingFilter was called.
func newExistingFilter(ctx context.Context, c client.Client) (func(di item) bool, error) {
	list := &lsv1alpha1.DeployItemList{}
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	uids := map[types.UID]bool{}
	for i := range list.Items {
		uids[list.Items[i].UID] = true
	}
	return func(di item) bool { return uids[di.UID] }, nil
}

// subjects is the number of subjects created so far. It makes the item type of each subject unique.
var subjects = 0

// newSubject returns a subject for the deployer with a unique item type.
func newSubject(name string, spoil newFaultInjector, only ...string) conformance.Subject {
	subjects++
	kind := lsv1alpha1.DeployItemType(fmt.Sprintf("spoiled.deployerkit.dev/kind-%03d", subjects))
	config := func(c configuration) any {
		c.APIVersion, c.Kind = "spoiled.deployerkit.dev/v1", "Configuration"
		return c
	}
	return conformance.Subject{
		Name: name, Type: kind, Start: start(kind, spoil), Options: conformance.Options{Only: only},
		Target: func(*rest.Config) (lsv1alpha1.TargetSpec, error) {
			return lsv1alpha1.TargetSpec{Type: "spoiled.deployerkit.dev/nowhere", Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(`{}`))}, nil
		},
		TargetLabels: map[string]string{"environment": "conformance"}, OtherTargetLabels: map[string]string{"environment": "other"},
		Valid:   func(types.NamespacedName) any { return config(configuration{}) },
		Invalid: func(_ types.NamespacedName, note string) any { return config(configuration{Wrong: note}) },
		Slow:    func(types.NamespacedName) any { return config(configuration{Slow: true}) },
		Finish: func(ctx context.Context, c client.Client, key types.NamespacedName) error {
			di := &lsv1alpha1.DeployItem{}
			di.Namespace, di.Name = key.Namespace, key.Name
			return c.Patch(ctx, di, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"config":{"slow":null}}}`)))
		},
		Deployed: func(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
			err := c.Get(ctx, key, &corev1.ConfigMap{})
			return err == nil, client.IgnoreNotFound(err)
		},
		Bounds: conformance.Bounds{Finish: time.Minute, Cleanup: 500 * time.Millisecond},
	}
}
