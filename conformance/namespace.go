// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// targetName is the name of the Target of the items. Its labels match the selectors of the subject.
const targetName = "conformance"

// pollInterval is the time between two reads while a check waits.
const pollInterval = 20 * time.Millisecond

// namespace is the namespace of one check. It records the history of its items.
type namespace struct {
	env     *env
	name    string
	history *History
	foreign map[string]bool // names of the items that the deployer must not process, and which it therefore does not delete
}

// newNamespace creates a namespace with a Context and a Target, and begins to record the history of its items.
func (e *env) newNamespace(ctx context.Context) (*namespace, error) {
	created := &corev1.Namespace{}
	created.GenerateName = "conformance-"
	if err := e.client.Create(ctx, created); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	ns := &namespace{env: e, name: created.Name, foreign: map[string]bool{}}
	var err error
	if ns.history, err = Record(ctx, e.watcher, ns.name, e.revision); err != nil {
		return nil, err
	}
	if err := e.ls.EnsureContext(ctx, ns.name); err != nil {
		return nil, err
	}
	if e.subject.Target != nil {
		if err := ns.makeTarget(ctx, targetName, e.subject.TargetLabels); err != nil {
			return nil, err
		}
	}
	return ns, nil
}

// makeTarget creates a Target with the content that the subject returns.
func (ns *namespace) makeTarget(ctx context.Context, name string, labels map[string]string) error {
	spec, err := ns.env.subject.Target(ns.env.config)
	if err != nil {
		return fmt.Errorf("create content of Target: %w", err)
	}
	target := &lsv1alpha1.Target{Spec: spec}
	target.Namespace, target.Name, target.Labels = ns.name, name, labels
	if err := ns.env.client.Create(ctx, target); err != nil {
		return fmt.Errorf("create Target: %w", err)
	}
	return nil
}

// close checks the history against the rules and deletes the namespace with everything in it.
func (ns *namespace) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ns.env.subject.Bounds.Finish)
	defer cancel()
	err := ns.history.Sync(ctx)
	ns.history.Stop()
	ns.env.judged.add(ns.history)
	return errors.Join(err, ns.clean(ctx))
}

// clean deletes the items and then the namespace. It waits until the deployer has deleted the items, but at most for
// Bounds.Cleanup, and then removes the finalizers of the remaining items.
func (ns *namespace) clean(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, ns.env.subject.Bounds.Cleanup)
	defer cancel()
	list := &lsv1alpha1.DeployItemList{}
	gone := func(ctx context.Context) (bool, error) {
		if err := ns.env.client.List(ctx, list, client.InNamespace(ns.name)); err != nil {
			return false, err
		}
		for i := range list.Items {
			if err := ns.requestDeletion(ctx, &list.Items[i]); err != nil {
				return false, err
			}
		}
		return len(list.Items) == 0, nil
	}
	err := wait.PollUntilContextCancel(bounded, pollInterval, true, gone)
	if err != nil && bounded.Err() == nil {
		return fmt.Errorf("clean up: %w", err)
	}
	for i := range list.Items {
		if err := ns.removeFinalizers(ctx, &list.Items[i]); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	object := &corev1.Namespace{}
	object.Name = ns.name
	if err := ns.env.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// requestDeletion deletes an item as Landscaper does. The caller must call it repeatedly until the item no longer
// exists, because the job that deletes the item can be triggered only after the current run has ended.
func (ns *namespace) requestDeletion(ctx context.Context, di item) error {
	key := client.ObjectKeyFromObject(di)
	foreign := ns.foreign[di.Name]
	switch {
	case di.DeletionTimestamp == nil:
		if err := ns.env.ls.MarkForDeletion(ctx, key); client.IgnoreNotFound(err) != nil {
			return err
		}
	case ns.env.usesJobs() && di.Status.JobID == di.Status.JobIDFinished && !foreign:
		if _, err := ns.env.ls.Trigger(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if foreign {
		return ns.removeFinalizers(ctx, di)
	}
	return nil
}

func (ns *namespace) removeFinalizers(ctx context.Context, di item) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(ns.env.client.Patch(ctx, di, patch))
}
