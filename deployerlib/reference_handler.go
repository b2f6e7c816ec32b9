// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/deployerkit/deployerkit/targets"
)

// referenceHandler handles the events of an object to which items refer.
type referenceHandler[T client.Object] struct {
	// isChanged reports whether a run that reads the second version may have another result than a run that has read the
	// first version.
	isChanged func(old, obj T) bool
	// onChange is called for new objects, and for objects that differ from their previous version.
	onChange func(ctx context.Context, obj T)
	// reader is the reader of these objects. Each event discards its last response about the object.
	reader *freshReader[T]
}

// newHandler returns the handler of the events.
func (r referenceHandler[T]) newHandler() handler.TypedFuncs[T, request] {
	return handler.TypedFuncs[T, request]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], _ workQueue) {
			r.reader.forget(client.ObjectKeyFromObject(e.Object))
		},
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], _ workQueue) {
			r.reader.forget(client.ObjectKeyFromObject(e.Object))
			if !e.IsInInitialList {
				r.onChange(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], _ workQueue) {
			r.reader.forget(client.ObjectKeyFromObject(e.ObjectNew))
			if r.isChanged(e.ObjectOld, e.ObjectNew) {
				r.onChange(ctx, e.ObjectNew)
			}
		},
	}
}

// newTargetHandler returns the handler for events about Targets.
func (r *reconciler) newTargetHandler() handler.TypedFuncs[*lsv1alpha1.Target, request] {
	return referenceHandler[*lsv1alpha1.Target]{
		reader:    r.loader.targets,
		isChanged: r.hasTargetChanged,
		onChange: func(ctx context.Context, t *lsv1alpha1.Target) {
			r.loader.resolver.Forget(client.ObjectKeyFromObject(t))
			r.events.enqueueReferring(ctx, t.Namespace, func(di *lsv1alpha1.DeployItem) bool {
				return di.Spec.Target != nil && di.Spec.Target.Name == t.Name
			})
		},
	}.newHandler()
}

// hasTargetChanged reports whether the content of a Target differs from that of an earlier version, or whether only one
// of the two versions matches the target selectors. Other labels and annotations do not matter.
func (r *reconciler) hasTargetChanged(old, t *lsv1alpha1.Target) bool {
	if old.UID != t.UID || !apiequality.Semantic.DeepEqual(old.Spec, t.Spec) {
		return true
	}
	before, beforeErr := targets.MatchesSelectors(old, r.args.TargetSelectors)
	now, nowErr := targets.MatchesSelectors(t, r.args.TargetSelectors)
	return before != now || (beforeErr == nil) != (nowErr == nil)
}

// newContextHandler returns the handler for events about Contexts.
func (r *reconciler) newContextHandler() handler.TypedFuncs[*lsv1alpha1.Context, request] {
	return referenceHandler[*lsv1alpha1.Context]{
		reader:    r.loader.contexts,
		isChanged: hasContextChanged,
		onChange: func(ctx context.Context, lsCtx *lsv1alpha1.Context) {
			r.events.enqueueReferring(ctx, lsCtx.Namespace, func(di *lsv1alpha1.DeployItem) bool { return getContextName(di) == lsCtx.Name })
		},
	}.newHandler()
}

// hasContextChanged reports whether the content of a Context differs from that of an earlier version. Labels and
// annotations do not matter.
func hasContextChanged(old, lsCtx *lsv1alpha1.Context) bool {
	content := func(c *lsv1alpha1.Context) lsv1alpha1.Context {
		out := *c
		out.ObjectMeta = metav1.ObjectMeta{UID: c.UID}
		return out
	}
	return !apiequality.Semantic.DeepEqual(content(old), content(lsCtx))
}
