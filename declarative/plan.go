// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/upkeep"
)

// Plan calls the handler once and returns what the deployer would create, change and delete in the target. It writes
// nothing; see [apply.Engine.Plan]. The parameter `ls` is a client for the cluster that contains the deploy items. Plan
// reads the namespace kube-system of both clusters, and all children of the item from the target. It finds the children
// by the UID of the item. The provider status of the item determines which children are to be deleted.
//
// Plan returns an error if the handler fails, or if the response or the options are invalid. If some changes cannot be
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
	owner, inventory, err := upkeep.Planned(ctx, ls, target, di, status.inventory)
	if err != nil {
		return apply.Plan{}, err
	}
	if o.OrphanChildren {
		inventory.Former = upkeep.Kept(inventory.Former)
	}
	desired, err := o.ask(ctx, target, handler, di, owner, inventory)
	if err != nil {
		return apply.Plan{}, err
	}
	return apply.New(target, target.RESTMapper(), apply.Options{RefuseUnowned: true}).Plan(ctx, owner, desired, inventory)
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

// ask calls the handler with the children that exist in the target, and returns the desired objects.
func (o *Options) ask(
	ctx context.Context, target client.Client, handler Handler, di *lsv1alpha1.DeployItem, owner ownership.Owner, inventory apply.Inventory,
) ([]apply.Desired, error) {
	var children []*unstructured.Unstructured
	for _, kind := range o.Children {
		found, err := listChildren(ctx, target, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind), owner.UID)
		if err != nil {
			return nil, err
		}
		children = append(children, found...)
	}
	req, err := NewRequest(di, nil, children...)
	if err != nil {
		return nil, err
	}
	response, err := handler.Sync(ctx, req)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, errors.New("the handler returned neither a response nor an error")
	}
	var owns func(apply.Ref) bool
	if tracking := o.Tracking; tracking != nil && tracking.OwnerReference && inventory.Cluster != nil && inventory.Cluster.UID == owner.Landscape {
		owns = func(ref apply.Ref) bool {
			mapping, err := target.RESTMapper().RESTMapping(ref.GVK().GroupKind(), ref.GVK().Version)
			return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && ref.Namespace == di.Namespace
		}
	}
	return o.Desired(di, response, owns)
}

// listChildren lists the children of a kind. It returns none if the target does not know the kind.
func listChildren(ctx context.Context, target client.Client, gvk schema.GroupVersionKind, item types.UID) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := target.List(ctx, list, client.InNamespace(metav1.NamespaceAll), client.MatchingLabels{ownership.LabelItem: string(item)})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.GroupKind(), err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		if owner, marked := ownership.OwnerOf(&list.Items[i]); marked && owner.UID == item {
			list.Items[i].SetManagedFields(nil) // the children that a handler receives in a run have no managedFields either
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
