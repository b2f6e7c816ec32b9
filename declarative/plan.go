// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/targets"
)

// Plan calls the handler once and returns what the deployer would create, change and delete in the target. It writes
// nothing; see [apply.Engine.Plan]. The provider status of the item determines which children are to be deleted.
//
// The handler receives the same request as in a run. Plan uses ls, a client for the cluster that contains the deploy
// items and Targets. It reads the namespace kube-system of both clusters, the item's Target, and all children of the
// item. It finds the children by their labels and in the inventory. If the Target does not exist, because `target` is a
// client for a cluster without one, [SyncRequest.Target] contains only the name and namespace.
//
// Plan returns an error if the handler fails, if the response or the options are invalid, or if the target does not
// serve a kind of the children at the moment, so that children may be missing in the request. If some changes cannot be
// planned, it returns an error and a plan that contains the other changes.
func Plan(ctx context.Context, ls client.Reader, target client.Client, handler Handler, o Options, di *lsv1alpha1.DeployItem) (apply.Plan, error) {
	o.Default()
	if err := o.Validate(); err != nil {
		return apply.Plan{}, fmt.Errorf("options: %w", err)
	}
	status, err := decodeStatus(di.Status.ProviderStatus)
	if err != nil {
		return apply.Plan{}, err
	}
	owner, inventory, err := managed.PlanInventory(ctx, ls, target, di, status.inventory)
	if err != nil {
		return apply.Plan{}, err
	}
	named, err := getTarget(ctx, ls, di)
	if err != nil {
		return apply.Plan{}, err
	}
	if o.OrphanChildren {
		inventory.Former = managed.WithKeepPolicy(inventory.Former)
	}
	children, err := o.readChildren(ctx, target, di, owner, inventory)
	if err != nil {
		return apply.Plan{}, err
	}
	req, err := NewRequest(di, named, children...)
	if err != nil {
		return apply.Plan{}, err
	}
	response, err := handler.Sync(ctx, req)
	if err != nil {
		return apply.Plan{}, err
	}
	desired, err := o.getDesired(target, di, owner, inventory, response)
	if err != nil {
		return apply.Plan{}, err
	}
	return apply.New(target, target.RESTMapper(), apply.Options{RefuseUnowned: true, FindOwner: managed.FindOwner(ls)}).Plan(ctx, owner, desired, inventory)
}

// Plan calls the function [Plan] with the handler and the options of the deployer. It implements plan.Planner, so that
// the deployer's program has the command plan.
func (d *deployer) Plan(ctx context.Context, ls client.Reader, target client.Client, di *lsv1alpha1.DeployItem) (apply.Plan, error) {
	if d.handler == nil {
		return apply.Plan{}, errNoHandler
	}
	return Plan(ctx, ls, target, d.handler, d.options, di)
}

// TargetOptions returns the restrictions under which the deployer opens Targets.
func (d *deployer) TargetOptions() (targets.Policy, targets.Limits) {
	return d.options.Targets, d.options.TargetLimits
}

// getTarget returns the Target that an item names, or nil if the item names none.
func getTarget(ctx context.Context, ls client.Reader, di *lsv1alpha1.DeployItem) (*lsv1alpha1.Target, error) {
	if di.Spec.Target == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: di.Namespace, Name: di.Spec.Target.Name}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := ls.Get(ctx, key, target); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("get Target %s: %w", key, err)
	}
	target.Namespace, target.Name = key.Namespace, key.Name // a failed read may have cleared them
	target.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("Target"))
	return target, nil
}

// getDesired returns the desired objects of a response.
func (o *Options) getDesired(
	target client.Client, di *lsv1alpha1.DeployItem, owner ownership.Owner, inventory apply.Inventory, response *SyncResponse,
) ([]apply.Desired, error) {
	if response == nil {
		return nil, errors.New("the handler returned neither a response nor an error")
	}
	home := inventory.Cluster != nil && inventory.Cluster.UID == owner.Landscape
	return o.ToDesired(di, response, target.RESTMapper(), home)
}

// readChildren returns the children that a run would observe, in any order. A run takes them from its watches; see
// run.listChildren. If the target does not serve a kind at the moment, so that children may be missing, readChildren
// returns an error.
func (o *Options) readChildren(
	ctx context.Context, target client.Client, di *lsv1alpha1.DeployItem, owner ownership.Owner, inventory apply.Inventory,
) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	prover := absence.NewProver(target, target.RESTMapper())
	for _, kind := range o.Children {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		entries := filterEntries(inventory, gvk.GroupKind())
		r := kindReader{target: target, prover: prover, gvk: gvk, owner: owner, found: map[types.NamespacedName]*unstructured.Unstructured{}}
		if err := r.readServed(ctx, o.listSearchNamespaces(di, entries), entries); err != nil {
			return nil, err
		}
		for _, child := range r.found {
			child.SetManagedFields(nil)
			out = append(out, child)
		}
	}
	return out, nil
}

// kindReader reads the children of a kind without watches.
type kindReader struct {
	target client.Reader
	prover *absence.Prover
	gvk    schema.GroupVersionKind
	owner  ownership.Owner
	found  map[types.NamespacedName]*unstructured.Unstructured
}

// readServed reads the children of the kind in a version that the target serves. If the kind is proved not to exist,
// there are no children.
func (r *kindReader) readServed(ctx context.Context, namespaces []string, entries []apply.Entry) error {
	err := r.readAll(ctx, namespaces, entries)
	if meta.IsNoMatchError(err) && len(entries) == 0 {
		return nil
	}
	err = r.prover.AddKindError(ctx, r.gvk.GroupKind(), err)
	if version := absence.GetServedVersion(err); version != "" && version != r.gvk.Version {
		r.gvk.Version = version
		err = r.prover.AddKindError(ctx, r.gvk.GroupKind(), r.readAll(ctx, namespaces, entries))
	}
	if absence.ClassifyError(absence.Object{Kind: r.gvk.GroupKind()}, err).IsProved() {
		return nil
	}
	return err
}

// readAll reads the children in all namespaces, or in the given ones if the target does not allow listing all. It then
// reads the objects of the inventory that are not among them, for example because they have lost their labels.
func (r *kindReader) readAll(ctx context.Context, namespaces []string, entries []apply.Entry) error {
	err := r.list(ctx, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		err = nil
		for _, namespace := range namespaces {
			if one := r.list(ctx, namespace); !apierrors.IsForbidden(one) {
				err = errors.Join(err, one)
			}
		}
	}
	for _, entry := range entries {
		if err == nil && r.found[entry.Ref().Key()] == nil {
			err = r.get(ctx, entry)
		}
	}
	return err
}

// pageSize is the number of objects that one request lists.
const pageSize = 500

// list reads the children that carry the label and annotations of the item. Like a watch, it asks for the objects of
// all items, because children of an earlier item with the same name carry another UID.
func (r *kindReader) list(ctx context.Context, namespace string) error {
	list := &unstructured.UnstructuredList{}
	for {
		list.SetGroupVersionKind(r.gvk.GroupVersion().WithKind(r.gvk.Kind + "List"))
		err := r.target.List(ctx, list, client.InNamespace(namespace), client.HasLabels{ownership.LabelItem}, client.Limit(pageSize), client.Continue(list.GetContinue()))
		if err != nil {
			return fmt.Errorf("list %s: %w", r.gvk.GroupKind(), err)
		}
		for i := range list.Items {
			if child := &list.Items[i]; isOwn(child, r.owner) {
				r.found[client.ObjectKeyFromObject(child)] = child
			}
		}
		if list.GetContinue() == "" {
			return nil
		}
	}
}

// get reads an object of the inventory.
func (r *kindReader) get(ctx context.Context, entry apply.Entry) error {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(r.gvk)
	err := r.target.Get(ctx, entry.Ref().Key(), child)
	if absence.ClassifyError(absence.Object{Kind: r.gvk.GroupKind(), Name: entry.Name}, err).IsProved() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", entry.Ref(), err)
	}
	if child.GetUID() == entry.UID || isOwn(child, r.owner) {
		r.found[entry.Ref().Key()] = child
	}
	return nil
}
