// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// hookRunner runs the hooks of an operation in the target.
type hookRunner struct {
	*managed.Run

	clock  clock.Clock
	config Extension // the zero value if the configuration of the item is invalid
	record *release.Record
	// namespace is the namespace of hooks that name none.
	namespace string
	state     *hookState
}

// newHookRunner returns a hookRunner for an operation.
func (r *run) newHookRunner(op *operation) *hookRunner {
	h := &hookRunner{Run: r.Managed, clock: r.deployer.manager.GetRuntime().Clock, record: op.record, namespace: op.storage.Namespace(), state: &op.hooks}
	if r.config != nil {
		h.config = r.config.Extension
	}
	return h
}

// hookState is the state of the hooks of an operation between calls.
type hookState struct {
	hookRun

	created map[apply.Ref]*unstructured.Unstructured // identifies the objects that the operation has created
}

// hookRun is the progress of the hooks of one point of an operation.
type hookRun struct {
	index   int  // the hook that runs now
	cleared bool // the object of an earlier run is gone
	exists  bool // the object was created
}

// hookError is the failure of a hook.
type hookError struct {
	event release.HookEvent
	hook  string
	text  string
}

// Error returns the text.
func (e *hookError) Error() string {
	return fmt.Sprintf("%s hook %s: %s", e.event, e.hook, e.text)
}

// runHooks runs the hooks of a point of an operation, one after the other.
func (h *hookRunner) runHooks(ctx context.Context, event release.HookEvent) error {
	if h.config.DisableHooks || h.record == nil {
		return nil
	}
	hooks, err := h.selectHooks(event)
	if err != nil {
		return err
	}
	for h.state.index < len(hooks) {
		hook := hooks[h.state.index]
		err := h.runHook(ctx, event, hook)
		if _, failed := err.(*hookError); failed { //nolint:errorlint // runHook returns this type unwrapped
			hook.SetEnded(h.clock.Now(), false)
			h.cleanUpFailed(ctx, hooks[:h.state.index+1])
		}
		if err != nil {
			return err
		}
		hook.SetEnded(h.clock.Now(), true)
		h.state.hookRun = hookRun{index: h.state.index + 1}
	}
	return h.deleteSucceeded(ctx, hooks)
}

// deleteSucceeded deletes the objects of hooks that have succeeded, according to their policies.
func (h *hookRunner) deleteSucceeded(ctx context.Context, hooks []release.Hook) error {
	for _, hook := range slices.Backward(hooks) {
		if hook.IsDeletedAfterSuccess() {
			if err := h.deleteHook(ctx, hook); err != nil {
				return err
			}
		}
	}
	h.state.hookRun = hookRun{}
	return nil
}

// selectHooks returns the hooks that run at a point of an operation.
func (h *hookRunner) selectHooks(event release.HookEvent) ([]release.Hook, error) {
	hooks, err := h.record.Hooks(event)
	if err != nil || event != release.Test {
		return hooks, err
	}
	return slices.DeleteFunc(hooks, func(hook release.Hook) bool { return !h.config.Test.selects(hook.Object.GetName()) }), nil
}

// runHook deletes the object of an earlier run, creates the object of the hook, and waits until the hook has ended.
func (h *hookRunner) runHook(ctx context.Context, event release.HookEvent, hook release.Hook) error {
	object, mapping, err := h.hookObject(hook)
	if err != nil {
		return &hookError{event: event, hook: describe(hook.Object), text: err.Error()}
	}
	if !h.state.cleared && hook.IsDeletedBefore() {
		if err := h.clearHook(ctx, object, mapping); err != nil {
			return err
		}
	}
	h.state.cleared = true
	if !h.state.exists {
		hook.SetStarted(h.clock.Now())
		applied := object.DeepCopy()
		err := h.Cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership)
		if isRejected(err) {
			return &hookError{event: event, hook: describe(object), text: err.Error()}
		}
		if err != nil {
			return fmt.Errorf("create hook %s: %w", describe(object), err)
		}
		h.state.exists = true
		if h.state.created == nil {
			h.state.created = map[apply.Ref]*unstructured.Unstructured{}
		}
		h.state.created[apply.ToRef(object)] = metadataOf(applied)
	}
	return h.awaitHook(ctx, event, object, mapping)
}

// isRejected reports whether the API server rejected an object, so that another attempt does not help.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// hookObject returns the object of a hook, with its namespace, and the mapping of its kind.
func (h *hookRunner) hookObject(hook release.Hook) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	object := hook.Object.DeepCopy()
	mapping, err := h.Cluster.GetMapping(object.GroupVersionKind())
	if err != nil {
		return nil, nil, err
	}
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(h.namespace)
	}
	return object, mapping, nil
}

// clearHook deletes the object of an earlier run, and waits until it is gone.
func (h *hookRunner) clearHook(ctx context.Context, object *unstructured.Unstructured, mapping *meta.RESTMapping) error {
	live, err := h.readHook(ctx, object)
	if err != nil || live == nil {
		return err
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return nil
	}
	if live.GetDeletionTimestamp() == nil {
		if err := h.deleteObject(ctx, live); err != nil {
			return err
		}
		if live, err = h.readHook(ctx, object); err != nil || live == nil {
			return err
		}
	}
	return h.waitForHook("the deletion of hook "+describe(object), live, mapping)
}

// deleteObject deletes exactly the given object, together with its dependents.
func (h *hookRunner) deleteObject(ctx context.Context, live client.Object) error {
	uid := live.GetUID()
	err := h.Cluster.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s: %w", live.GetObjectKind().GroupVersionKind().Kind, live.GetName(), err)
	}
	return nil
}

// readHook reads the object of a hook. It returns nil if the object does not exist.
func (h *hookRunner) readHook(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := h.Cluster.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get hook %s: %w", describe(object), err)
	}
	return live, nil
}

// waitForHook returns an error that makes the item wait until the object of a hook changes.
func (h *hookRunner) waitForHook(reason string, live *unstructured.Unstructured, mapping *meta.RESTMapping) error {
	request := h.Cluster.Watcher().ForObject(mapping.Resource, client.ObjectKeyFromObject(live), live)
	return h.NewWaitError("hooks", 0, "waiting for "+reason, h.WatchUntilChanged([]observe.WatchRequest{request}))
}

// awaitHook waits until a hook has ended. A Job or a Pod must succeed, and all other objects are ready at once.
func (h *hookRunner) awaitHook(ctx context.Context, event release.HookEvent, object *unstructured.Unstructured, mapping *meta.RESTMapping) error {
	kind := object.GroupVersionKind().GroupKind()
	if kind != jobKind && kind != podKind {
		return nil
	}
	live, err := h.readHook(ctx, object)
	if err != nil {
		return err
	}
	if live == nil {
		return &hookError{event: event, hook: describe(object), text: "was deleted before it had ended"}
	}
	done, failure := stateOfJob(live)
	if kind == podKind {
		done, failure = stateOfPod(live)
	}
	switch {
	case failure != "":
		return &hookError{event: event, hook: describe(object), text: failure + h.describePods(ctx, live)}
	case done:
		return nil
	}
	return h.waitForHook("hook "+describe(object), live, mapping)
}

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// stateOfJob reports whether a Job has ended, and why it failed.
func stateOfJob(job *unstructured.Unstructured) (done bool, failure string) {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["status"] != string(metav1.ConditionTrue) {
			continue
		}
		switch fields["type"] {
		case "Complete":
			return true, ""
		case "Failed":
			return true, fmt.Sprintf("failed: %v: %v", fields["reason"], fields["message"])
		}
	}
	return false, ""
}

// stateOfPod reports whether a Pod has ended, and why it failed.
func stateOfPod(pod *unstructured.Unstructured) (done bool, failure string) {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch corev1.PodPhase(phase) { //nolint:exhaustive // a Pod in any other phase has not ended
	case corev1.PodSucceeded:
		return true, ""
	case corev1.PodFailed:
		reason, _, _ := unstructured.NestedString(pod.Object, "status", "reason")
		return true, strings.TrimSpace("failed " + reason)
	}
	return false, ""
}

// describePods describes how the containers of a failed hook ended. It returns "" if that is not known.
func (h *hookRunner) describePods(ctx context.Context, hook *unstructured.Unstructured) string {
	pods := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*hook}}
	if hook.GetKind() != "Pod" {
		pods = &unstructured.UnstructuredList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if h.Cluster.List(ctx, pods, client.InNamespace(hook.GetNamespace()), client.MatchingLabels{"batch.kubernetes.io/job-name": hook.GetName()}) != nil {
			return ""
		}
	}
	for i := range pods.Items {
		statuses, _, _ := unstructured.NestedSlice(pods.Items[i].Object, "status", "containerStatuses")
		for _, status := range statuses {
			fields, _ := status.(map[string]any)
			terminated, found, _ := unstructured.NestedMap(fields, "state", "terminated")
			if !found {
				terminated, found, _ = unstructured.NestedMap(fields, "lastState", "terminated")
			}
			if found && terminated["exitCode"] != int64(0) {
				return fmt.Sprintf(" (container %v ended with exit code %v: %v)", fields["name"], terminated["exitCode"], terminated["reason"])
			}
		}
	}
	return ""
}

// deleteHook deletes the object of a hook, and does not wait until it is gone.
func (h *hookRunner) deleteHook(ctx context.Context, hook release.Hook) error {
	object, _, err := h.hookObject(hook)
	if err != nil {
		return nil //nolint:nilerr // the kind is not served any more, so there is no object
	}
	if created := h.state.created[apply.ToRef(object)]; created != nil && created.GetUID() != "" {
		return h.deleteObject(ctx, created) // a read might not find the object yet
	}
	live, err := h.readHook(ctx, object)
	if err != nil || live == nil {
		return err
	}
	return h.deleteObject(ctx, live)
}

// metadataOf returns a copy of an object that contains only what identifies it.
func metadataOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(object.GroupVersionKind())
	out.SetNamespace(object.GetNamespace())
	out.SetName(object.GetName())
	out.SetUID(object.GetUID())
	return out
}

// cleanUpFailed deletes the object of the hook that failed, and of the hooks that succeeded before, according to their
// policies. The last hook is the one that failed. Objects that cannot be deleted remain.
func (h *hookRunner) cleanUpFailed(ctx context.Context, hooks []release.Hook) {
	last := len(hooks) - 1
	for i, hook := range hooks {
		if i == last && hook.IsDeletedAfterFailure() || i < last && hook.IsDeletedAfterSuccess() {
			_ = h.deleteHook(ctx, hook) // the failure of the hook is the error that matters
		}
	}
	h.state.hookRun = hookRun{}
}
