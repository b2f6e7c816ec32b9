// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/internal/version"
)

// readers is how many objects are read at a time for the readiness check.
const readers = 16

// AwaitReady waits until all objects of the item are ready, at most for bound. If bound is 0, it waits as long as the
// job may take. An object that was ready and, according to a watch, has not changed since is not read again.
// AwaitReady returns nil if all objects are ready. Otherwise it returns the error of Wait, or the error that prevents
// objects from being read.
func (r *Run) AwaitReady(ctx context.Context, bound time.Duration) error {
	reasons := make([]string, len(r.Inventory.Entries))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, entry := range r.Inventory.Entries {
		if entry.UID == "" || entry.Deleting || r.knownReady(entry.Ref(), entry.UID) {
			continue
		}
		group.Go(func() (err error) {
			reasons[i], err = r.look(groupCtx, entry.Ref())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	unready := slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" })
	if len(unready) == 0 {
		return nil
	}
	reason := unready[0]
	if more := len(unready) - 1; more > 0 {
		reason = fmt.Sprintf("%s (and %d more)", reason, more)
	}
	return r.Wait("readiness", bound, reason, r.pollReady())
}

// Ready returns the reason why an object of the item's target is not ready, or "" if it is ready. An object that was
// ready and, according to a watch, has not changed since is not read again. Kinds that are ready as soon as they
// exist are read once. Ready returns an error if the object cannot be read.
func (r *Run) Ready(ctx context.Context, ref apply.Ref) (reason string, err error) {
	if was := r.item.wasReady(ref); was.uid != "" && r.unchanged(ref, was) {
		return "", nil
	}
	return r.look(ctx, ref)
}

// stateless are built-in kinds that are ready as soon as they exist.
var stateless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
}

// knownReady reports whether an object need not be read. Either the previous apply has shown that the object exists
// and its kind needs no more, or the object was ready and, according to a watch, has not changed since.
func (r *Run) knownReady(ref apply.Ref, uid types.UID) bool {
	if stateless[ref.GVK().GroupKind()] {
		return true
	}
	was := r.item.wasReady(ref)
	return was.uid == uid && r.unchanged(ref, was)
}

// unchanged reports whether a watch knows that an object is still the same.
func (r *Run) unchanged(ref apply.Ref, was readyAt) bool {
	mapping, err := r.Cluster.Mapping(ref.GVK())
	if err != nil || mapping == nil {
		return false
	}
	seen, known := r.Cluster.watcher.Get(mapping.Resource, ref.Key())
	return known && seen.UID == was.uid && seen.ResourceVersion == was.version
}

// look reads an object and returns the reason why it is not ready. If the object is ready, look remembers that.
func (r *Run) look(ctx context.Context, ref apply.Ref) (reason string, err error) {
	live, err := r.Read(ctx, r.Cluster, ref)
	switch {
	case err != nil:
		return "", err
	case live == nil:
		return ref.String() + " does not exist", nil
	}
	if result := r.Judge(ctx, live); !result.Ready() {
		r.saw(ref, live, result.RecheckAfter)
		return ref.String() + ": " + result.Reason, nil
	}
	r.item.setReady(ref, readyAt{uid: live.GetUID(), version: live.GetResourceVersion()})
	return "", nil
}

// Read reads an object of the item's target or another one. It returns nil, nil if the object does not exist, or if
// its kind is not known. It returns the errors of the target, and an error if the target answers with a state that is
// older than the item's own last write or what a watch has shown; such a target lags behind, so try again.
func (r *Run) Read(ctx context.Context, from *Cluster, ref apply.Ref) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK())
	err := from.Get(ctx, ref.Key(), obj)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if err := from.current(ref, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// current returns an error if a newer state of an object is known than the one that was read.
func (c *Cluster) current(ref apply.Ref, obj *unstructured.Unstructured) error {
	mapping, err := c.Mapping(ref.GVK())
	if err != nil || mapping == nil {
		return nil //nolint:nilerr // then nothing is known about it
	}
	seen, known := c.watcher.Get(mapping.Resource, ref.Key())
	if !known {
		return nil
	}
	if version.Older(obj.GetResourceVersion(), seen.ResourceVersion) {
		return fmt.Errorf("read %s: the target lags behind: it answers with version %s, and version %s is known",
			ref, obj.GetResourceVersion(), seen.ResourceVersion)
	}
	return nil
}

// saw records the state in which an object is waited for, and when to look again although it does not change (0 means
// never).
func (r *Run) saw(ref apply.Ref, live *unstructured.Unstructured, again time.Duration) {
	r.lookedMu.Lock()
	defer r.lookedMu.Unlock()
	if r.looked == nil {
		r.looked = map[apply.Ref]readyAt{}
	}
	r.looked[ref] = readyAt{uid: live.GetUID(), version: live.GetResourceVersion()}
	if again > 0 && (r.recheck == 0 || again < r.recheck) {
		r.recheck = again
	}
}

// pollReady returns when to look again at objects that are not ready.
func (r *Run) pollReady() time.Duration {
	r.lookedMu.Lock()
	defer r.lookedMu.Unlock()
	if r.recheck > 0 {
		return min(r.recheck, r.Poll())
	}
	return r.Poll()
}

// missed reports whether a watch shows a change of an object after this run looked at it and before the object was
// followed.
func (r *Run) missed() bool {
	r.lookedMu.Lock()
	defer r.lookedMu.Unlock()
	for ref, at := range r.looked {
		mapping, err := r.Cluster.Mapping(ref.GVK())
		if err != nil || mapping == nil {
			continue
		}
		seen, known := r.Cluster.watcher.Get(mapping.Resource, ref.Key())
		if known && (seen.UID != at.uid || version.Older(at.version, seen.ResourceVersion)) {
			return true
		}
	}
	return false
}

// ReadyAtOnce reports whether objects of a kind are ready as soon as they exist.
func ReadyAtOnce(kind schema.GroupKind) bool { return stateless[kind] }
