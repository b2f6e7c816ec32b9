// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
)

// computePlan calls the handler with a request, and computes the plan with the code of the deployer in a new in-memory
// cluster.
func (b *simulation) computePlan(ctx context.Context, req *declarative.SyncRequest) (*Plan, error) {
	item, inventory, err := b.getStored()
	if err != nil {
		return nil, err
	}
	cluster, err := b.newCluster()
	if err != nil {
		return nil, err
	}
	var response *declarative.SyncResponse
	once := declarative.HandlerFunc(func(ctx context.Context, _ *declarative.SyncRequest) (_ *declarative.SyncResponse, err error) {
		response, err = b.handler.Sync(ctx, req)
		return response, err
	})
	changes, err := declarative.Plan(ctx, cluster, cluster, once, b.options, item)
	if err = ignoreWaiting(err); err != nil {
		return nil, err
	}
	desired, err := b.options.ToDesired(item, response, b.mapper, true)
	if err != nil {
		return nil, err
	}
	plan := &Plan{ResyncAfter: response.ResyncAfter, Wait: response.Wait}
	if plan.Status, err = declarative.EncodeStatus(b.item, response.Status); err != nil {
		return nil, err
	}
	b.addSteps(plan, desired, changes)
	plan.Observed, err = b.applyAll(ctx, desired, inventory)
	return plan, err
}

// ignoreWaiting returns nil if each error in err has the class apply.ClassWait, which means that an object is not
// finished yet. Otherwise it returns err.
func ignoreWaiting(err error) error {
	all, ok := errors.AsType[apply.Errors](err)
	if !ok || slices.ContainsFunc(all, func(one *apply.Error) bool { return one.Class != apply.ClassWait }) {
		return err
	}
	return nil
}

// getStored returns a copy of the item, and its inventory. If the inventory does not contain an observed child, stored
// adds the child, as if the deployer had created it.
func (b *simulation) getStored() (*lsv1alpha1.DeployItem, apply.Inventory, error) {
	status := map[string]json.RawMessage{}
	own := map[string]json.RawMessage{}
	inventory := apply.Inventory{}
	item := b.item.DeepCopy()
	if item.UID == "" {
		item.UID = b.owner.UID
	}
	if raw := item.Status.ProviderStatus; raw != nil && len(raw.Raw) > 0 {
		if err := errors.Join(decode(raw.Raw, &status), decode(status[declarative.ReservedField], &own), decode(own[fieldInventory], &inventory)); err != nil {
			return nil, inventory, fmt.Errorf("status.providerStatus: %w", err)
		}
	}
	inventory.Cluster = &apply.ClusterID{UID: clusterID}
	if target := item.Spec.Target; target != nil {
		inventory.Cluster.Target = target.Name
	}
	for _, child := range b.children {
		ref := apply.ToRef(child)
		if !slices.ContainsFunc(inventory.Entries, func(e apply.Entry) bool { return e.Ref() == ref }) {
			inventory.Entries = append(inventory.Entries, apply.Entry{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: child.GetUID(), Hash: hashOfObserved,
			})
		}
	}
	var err error
	if own[fieldInventory], err = json.Marshal(inventory); err != nil {
		return nil, inventory, err
	}
	if status[declarative.ReservedField], err = json.Marshal(own); err != nil {
		return nil, inventory, err
	}
	raw, err := json.Marshal(status)
	item.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return item, inventory, err
}

const (
	// fieldInventory is the name of the field that contains the inventory. It is in the part of the provider status
	// that belongs to the library.
	fieldInventory = "inventory"
	// hashOfObserved stands for the hash in the inventory entry of an observed child. The deployer would store the hash
	// of the desired object of its last run, but that object is not known here.
	hashOfObserved = "observed"
)

// decode decodes a value. It leaves `into` as it is if there is no value, or if the value is null.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (b *simulation) addSteps(plan *Plan, desired []apply.Desired, changes apply.Plan) {
	planned := map[apply.Ref]apply.Change{}
	for _, change := range changes.Changes {
		planned[change.Ref] = change
	}
	wanted := map[apply.Ref]bool{}
	for _, d := range desired {
		ref := apply.ToRef(d.Object)
		change, found := planned[ref]
		wanted[ref] = true
		step := Step{Action: Action(change.Action), Ref: ref, Object: d.Object.Object}
		if !found {
			step.Action = b.getUnchangedAction(d)
		}
		for _, field := range change.Fields {
			step.Fields = append(step.Fields, field.Path)
		}
		plan.Steps = append(plan.Steps, step)
	}
	for _, live := range b.children {
		ref := apply.ToRef(live)
		if change, found := planned[ref]; found && !wanted[ref] {
			plan.Steps = append(plan.Steps, Step{Action: Action(change.Action), Ref: ref})
		}
	}
}

// getUnchangedAction returns the action for a desired child that the deployer does not change.
func (b *simulation) getUnchangedAction(d apply.Desired) Action {
	at := slices.IndexFunc(b.children, func(live *unstructured.Unstructured) bool { return apply.ToRef(live) == apply.ToRef(d.Object) })
	switch {
	case at < 0:
		return ActionMissing
	case d.Policy == apply.PolicyRetain, d.Strategy == apply.StrategyOnDelete, b.children[at].GetDeletionTimestamp() != nil:
		return ActionKeep
	}
	return ActionUnchanged
}

// maxPasses is the maximum number of times that the engine is called until everything is applied. A child that is
// recreated needs two calls.
const maxPasses = 4

// applyAll applies the desired children in another in-memory cluster, and returns the children that this cluster then
// contains. The desired children come first, in their order. They are followed by children whose deletion is not
// finished.
func (b *simulation) applyAll(ctx context.Context, desired []apply.Desired, inventory apply.Inventory) ([]any, error) {
	cluster, err := b.newCluster()
	if err != nil {
		return nil, err
	}
	options := apply.Options{Concurrency: b.options.Concurrency, RefuseUnowned: true}
	for range maxPasses {
		var report apply.Report
		inventory, report, err = apply.New(cluster, b.mapper, options).Apply(ctx, b.owner, desired, inventory)
		if err = ignoreWaiting(err); err != nil {
			return nil, err
		}
		if len(report.Waiting) == 0 {
			break
		}
	}
	refs := []apply.Ref{}
	for _, d := range desired {
		refs = append(refs, apply.ToRef(d.Object))
	}
	for _, live := range b.children {
		if ref := apply.ToRef(live); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	var out []any
	for _, ref := range refs {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		err := cluster.Get(ctx, ref.Key(), object)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == heldFinalizer }))
			out = append(out, object)
		}
	}
	return out, nil
}
