// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ItemFunc checks an expectation of a deploy item.
type ItemFunc func(di *lsv1alpha1.DeployItem) error

// ListItems returns the deploy items in the namespace of the scenario.
func (e *Env) ListItems(ctx context.Context) ([]lsv1alpha1.DeployItem, error) {
	list := &lsv1alpha1.DeployItemList{}
	err := e.List(ctx, list, client.InNamespace(e.Namespace))
	return list.Items, err
}

// GetItem reads the deploy item for which [ItemName] returns the given name.
func (e *Env) GetItem(ctx context.Context, name string) (*lsv1alpha1.DeployItem, error) {
	items, err := e.ListItems(ctx)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(di lsv1alpha1.DeployItem) bool { return ItemName(&di) != name })
	switch len(items) {
	case 0:
		return nil, apierrors.NewNotFound(lsv1alpha1.Resource("deployitems"), name)
	case 1:
		return &items[0], nil
	}
	return nil, fmt.Errorf("%d deploy items have the name %q", len(items), name)
}

// ItemName returns the name of an item in its blueprint. If Landscaper did not create the item, ItemName returns the
// name of the object.
func ItemName(di *lsv1alpha1.DeployItem) string {
	if name := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; name != "" {
		return name
	}
	return di.Name
}

// ExpectItem returns a step that waits until a deploy item meets an expectation. The name of the step consists of the
// name of the item and the text.
func ExpectItem(name, text string, expectation ItemFunc) Step {
	return Expect(name+" "+text, func(ctx context.Context, e *Env) error {
		di, err := e.GetItem(ctx, name)
		if err != nil {
			return err
		}
		return expectation(di)
	})
}

// ItemHasPhase expects a phase.
func ItemHasPhase(want lsv1alpha1.DeployItemPhase) ItemFunc {
	return func(di *lsv1alpha1.DeployItem) error {
		if di.Status.Phase != want {
			return fmt.Errorf("the phase is %q, not %q%s", di.Status.Phase, want, formatError(di.Status.LastError))
		}
		return nil
	}
}

// ItemFails expects the phase Failed and an error that has all codes of `want`, contains its message, and has its
// reason, unless that reason is empty.
func ItemFails(want lsv1alpha1.Error) ItemFunc {
	return func(di *lsv1alpha1.DeployItem) error {
		got := di.Status.LastError
		if di.Status.Phase != lsv1alpha1.DeployItemPhases.Failed || got == nil || !matchesError(*got, want) {
			return fmt.Errorf("the phase is %q and the error is %+v, not %+v", di.Status.Phase, got, want)
		}
		return nil
	}
}

func matchesError(got, want lsv1alpha1.Error) bool {
	for _, code := range want.Codes {
		if !slices.Contains(got.Codes, code) {
			return false
		}
	}
	return strings.Contains(got.Message, want.Message) && (want.Reason == "" || got.Reason == want.Reason)
}

// ItemHasNoOperation expects that a deploy item has no operation annotation.
func ItemHasNoOperation(di *lsv1alpha1.DeployItem) error {
	if operation := di.Annotations[lsv1alpha1.OperationAnnotation]; operation != "" {
		return fmt.Errorf("the item still has the operation %q", operation)
	}
	return nil
}

// ItemIsGone expects that a deploy item does not exist.
func ItemIsGone(name string) Func {
	return func(ctx context.Context, e *Env) error {
		di, err := e.GetItem(ctx, name)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("the item still exists, in phase %q%s", di.Status.Phase, formatError(di.Status.LastError))
	}
}

// ItemsRanInOrder expects that each item started after the previous item had finished.
func ItemsRanInOrder(names ...string) Func {
	return func(ctx context.Context, e *Env) error {
		var last metav1.Time
		for _, name := range names {
			di, err := e.GetItem(ctx, name)
			if err != nil {
				return err
			}
			s := di.Status
			if s.TransitionTimes == nil || s.TransitionTimes.FinishedTime == nil || s.LastReconcileTime == nil {
				return fmt.Errorf("item %s has not finished", name)
			}
			if s.LastReconcileTime.Before(&last) {
				return fmt.Errorf("item %s started at %s, but the previous item finished at %s", name, s.LastReconcileTime, last)
			}
			last = *s.TransitionTimes.FinishedTime
		}
		return nil
	}
}

// DescribeItems returns the state of all items as text.
func (e *Env) DescribeItems(ctx context.Context) string {
	items, err := e.ListItems(ctx)
	if err != nil {
		return err.Error()
	}
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = fmt.Sprintf("item %s is %q%s", ItemName(&items[i]), items[i].Status.Phase, formatError(items[i].Status.LastError))
	}
	return strings.Join(texts, "; ")
}

// formatError returns the message of an error, for the end of another message. It returns "" if there is no error.
func formatError(e *lsv1alpha1.Error) string {
	if e == nil {
		return ""
	}
	return ": " + e.Message
}
