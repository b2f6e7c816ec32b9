// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// Item returns a deploy item of generation 1 whose configuration is config as JSON. Its UID is derived from its name.
// Item ends the test if config is no JSON object, which an API server would refuse.
func Item(t testing.TB, namespace, name string, config any) *lsv1alpha1.DeployItem {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("encode the configuration: %v", err)
	}
	if len(raw) == 0 || raw[0] != '{' {
		t.Fatalf("the configuration is %s, want an object: an API server refuses it", raw)
	}
	return &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       lsv1alpha1.DeployItemSpec{Configuration: &runtime.RawExtension{Raw: raw}},
	}
}

// Run calls Sync once and returns what the deployer would do. children are the observed children with status and
// server-only fields, in any form that declarative.SyncResponse.Children accepts. Run returns the error of the handler,
// the faults of its response and of the options, and an error for a child that it cannot read or whose kind the options
// do not list. It does not change the item or the children.
func Run(ctx context.Context, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children ...any) (*Plan, error) {
	c, err := prepare(handler, options, item, children)
	if err != nil {
		return nil, err
	}
	req, err := c.request()
	if err != nil {
		return nil, err
	}
	return c.plan(ctx, req)
}

// Finalize calls Finalize once, as the deployer does when the item is deleted. children are as in Run. If the error is
// nil, the response is not nil, even if the handler returns none because it is done. Finalize returns an error if the
// handler has no Finalize or fails, if the options have a fault, or if a child cannot be read.
func Finalize(ctx context.Context, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children ...any) (*declarative.FinalizeResponse, error) {
	finalizer, ok := handler.(declarative.Finalizer)
	if !ok {
		return nil, fmt.Errorf("a %T has no method Finalize", handler)
	}
	b, err := prepare(handler, options, item, children)
	if err != nil {
		return nil, err
	}
	req, err := b.request()
	if err != nil {
		return nil, err
	}
	response, err := finalizer.Finalize(ctx, req)
	if err != nil {
		return nil, err
	}
	if response == nil {
		response = &declarative.FinalizeResponse{}
	}
	_, err = declarative.EncodeStatus(item, response.Status)
	return response, err
}

// bench is a handler with its input.
type bench struct {
	handler  declarative.Handler
	options  declarative.Options
	item     *lsv1alpha1.DeployItem
	children []*unstructured.Unstructured
}

// prepare checks the options and reads the children.
func prepare(handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children []any) (*bench, error) {
	options.Default()
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	b := &bench{handler: handler, options: options, item: item}
	configured := map[schema.GroupVersionKind]bool{}
	for _, kind := range options.Children {
		configured[schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)] = true
	}
	for i, child := range children {
		read, err := objects.Read(child)
		if err != nil {
			return nil, fmt.Errorf("observed child %d %w", i, err)
		}
		for _, one := range read {
			one.FillKind(options.Scheme, func(gvk schema.GroupVersionKind) bool { return configured[gvk] })
			object := &unstructured.Unstructured{Object: one.Body}
			if gvk := object.GroupVersionKind(); !configured[gvk] {
				return nil, fmt.Errorf("observed child %d is a %s %q, which options do not name: the handler would never see it", i, gvk.GroupVersion(), gvk.Kind)
			}
			b.children = append(b.children, object)
		}
	}
	return b, nil
}

// request makes a new request.
func (b *bench) request() (*declarative.SyncRequest, error) {
	return declarative.NewRequest(b.item, nil, b.children...)
}

// plan calls the handler.
func (b *bench) plan(ctx context.Context, req *declarative.SyncRequest) (*Plan, error) {
	response, err := b.handler.Sync(ctx, req)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, errors.New("the handler returned neither a response nor an error")
	}
	desired, err := b.options.Desired(b.item, response, func(apply.Ref) bool { return true })
	if err != nil {
		return nil, err
	}
	plan := &Plan{ResyncAfter: response.ResyncAfter, Wait: response.Wait}
	if plan.Status, err = declarative.EncodeStatus(b.item, response.Status); err != nil {
		return nil, err
	}
	b.compare(plan, desired)
	return plan, nil
}

// compare fills in the steps.
func (b *bench) compare(plan *Plan, desired []apply.Desired) {
	wanted := map[*unstructured.Unstructured]bool{}
	for _, d := range desired {
		live := b.find(apply.RefOf(d.Object))
		wanted[live] = true
		step := Step{Ref: apply.RefOf(d.Object), Object: d.Object.Object}
		if live != nil {
			step.Ref = apply.RefOf(live)
		}
		step.Action, step.Fields = b.judge(d, live)
		plan.Children = append(plan.Children, step)
		if after := afterwards(step, live); after != nil {
			plan.Observed = append(plan.Observed, after)
		}
	}
	for _, live := range b.children {
		if !wanted[live] {
			plan.Children = append(plan.Children, Step{Action: Delete, Ref: apply.RefOf(live)})
		}
	}
}

// find finds the observed child for a reference. It ignores a namespace that the library filled in if the kind is
// cluster-scoped.
func (b *bench) find(ref apply.Ref) *unstructured.Unstructured {
	for _, live := range b.children {
		other := apply.RefOf(live)
		if other.Namespace == "" {
			other.Namespace = ref.Namespace
		}
		if other == ref {
			return live
		}
	}
	return nil
}

// judge returns what is done with a child. live is nil if the child does not exist.
func (b *bench) judge(d apply.Desired, live *unstructured.Unstructured) (Action, []string) {
	update := declarative.Apply
	for _, kind := range b.options.Children {
		if kind.APIVersion == d.Object.GetAPIVersion() && kind.Kind == d.Object.GetKind() {
			update = kind.Update
		}
	}
	retained := d.Policy != ""
	switch {
	case retained && live == nil:
		return Missing, nil
	case live == nil:
		return Create, nil
	case retained || live.GetDeletionTimestamp() != nil:
		return Keep, nil
	}
	fields := missing(d.Object.Object, live.Object)
	switch {
	case len(fields) == 0:
		return Unchanged, nil
	case update == declarative.OnDelete:
		return Keep, nil
	case update == declarative.Recreate:
		return Recreate, fields
	}
	return Change, fields
}

// afterwards returns the observed child as it is after the step, or nil if it does not exist then.
func afterwards(step Step, live *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := &unstructured.Unstructured{Object: step.Object}
	switch step.Action {
	case Create, Recreate:
		return wanted.DeepCopy()
	case Change:
		out := live.DeepCopy()
		lay(out.Object, wanted.DeepCopy().Object)
		return out
	case Missing, Delete:
		return nil
	case Unchanged, Keep:
	}
	return live.DeepCopy()
}

// lay merges fields into an object.
func lay(over, fields map[string]any) {
	for key, value := range fields {
		below, isMap := value.(map[string]any)
		old, wasMap := over[key].(map[string]any)
		if isMap && wasMap {
			lay(old, below)
			continue
		}
		over[key] = value
	}
}
