// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/targets"
)

type competitorSpec struct {
	Values map[string]string `json:"values"`
}

// newHandled returns a contender whose deployer uses package declarative with the handler handleSync.
func newHandled() *competitor {
	e := &competitor{name: "handler", kind: competitorType, target: &faultnet.Counter{}, own: &faultnet.Counter{}}
	e.add = func(mgr ctrl.Manager, e *competitor) error {
		args := declarative.Args("bench.deployerkit.dev", competitorType, declarative.HandlerFunc(handleSync), declarative.Options{
			Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}},
			Targets:  targets.Policy{AllowPrivateHosts: true}, WrapTransport: e.wrapTarget,
		})
		args.Registerer, args.Options = prometheus.NewRegistry(), controller.Options{MaxConcurrentReconciles: e.workers}
		return deployerlib.Add(logr.Discard(), mgr, nil, args)
	}
	return e
}

// handleSync returns a ConfigMap for each value in the configuration, and the number of values as the status.
func handleSync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	spec, err := declarative.Config[competitorSpec](req)
	if err != nil {
		return nil, err
	}
	response := declarative.NewBuilder(map[string]any{"wanted": len(spec.Values)})
	for _, name := range slices.Sorted(maps.Keys(spec.Values)) {
		response.Add(newConfigMap(req.Name(name), spec.Values[name]))
	}
	return response.Build()
}

// newConfigMap returns a ConfigMap that an item deploys.
func newConfigMap(name, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": value}}
}

// newUnhandled returns a contender with a hand-written controller that sends the same requests as the library. The
// controller records new children in the status before it creates them. It applies a child only if the child has
// changed since its last apply. It sets the labels that the library sets. Finally, it writes the outcome of the job. It
// does not handle inventories, drift, deletion or errors.
func newUnhandled() *competitor {
	e := &competitor{name: "bare", kind: competitorType, target: &faultnet.Counter{}, own: &faultnet.Counter{}}
	e.add = func(mgr ctrl.Manager, e *competitor) error {
		target, err := client.New(withCounter(e.target, e.config), client.Options{})
		if err != nil {
			return err
		}
		u := &unhandled{bare: bare{client: mgr.GetClient()}, target: target}
		return ctrl.NewControllerManagedBy(mgr).Named("unhandled").For(&lsv1alpha1.DeployItem{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(u)
	}
	return e
}

type unhandled struct {
	bare

	target  client.Client
	applied sync.Map // the applied value of each child
}

// Reconcile makes the writes of a job, unless the job is finished.
func (u *unhandled) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := u.client.Get(ctx, req.NamespacedName, di); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, done := u.done.Load(di.Status.JobID); done || di.Status.JobID == di.Status.JobIDFinished {
		return ctrl.Result{}, nil
	}
	if err := u.begin(ctx, di); err != nil {
		return ctrl.Result{}, err
	}
	if err := u.apply(ctx, di); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, u.completeJob(ctx, di)
}

// apply applies the children that have changed since they were last applied, one after the other.
func (u *unhandled) apply(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	spec := competitorSpec{}
	if err := json.Unmarshal(di.Spec.Configuration.Raw, &spec); err != nil {
		return err
	}
	open := []map[string]any{}
	fresh := false
	for _, name := range slices.Sorted(maps.Keys(spec.Values)) {
		child := fmt.Sprintf("%s-%s", di.Name, name)
		before, known := u.applied.Load(child)
		if fresh = fresh || !known; before != spec.Values[name] {
			open = append(open, newConfigMap(child, spec.Values[name]))
		}
	}
	if fresh {
		if err := u.storeNames(ctx, di, open); err != nil {
			return err
		}
	}
	owner := ownership.Owner{UID: di.UID, Landscape: "landscape", Namespace: di.Namespace, Name: di.Name}
	for _, child := range open {
		object := &unstructured.Unstructured{Object: child}
		object.SetNamespace(di.Namespace)
		owner.Mark(object)
		value, _, _ := unstructured.NestedString(child, "data", "value")
		if err := u.target.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner.FieldManager()), client.ForceOwnership); err != nil {
			return err
		}
		u.applied.Store(object.GetName(), value)
	}
	return nil
}

// storeNames stores the names of the children in the status before they are created.
func (u *unhandled) storeNames(ctx context.Context, di *lsv1alpha1.DeployItem, children []map[string]any) error {
	raw, err := json.Marshal(map[string]any{"apiVersion": "example.org/v1", "kind": "Status", "children": children})
	if err != nil {
		return err
	}
	return u.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) { s.ProviderStatus = &runtime.RawExtension{Raw: raw} })
}
