// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/observe"
)

// maxConcurrentReads limits how many objects a readiness check reads at the same time.
const maxConcurrentReads = 16

// CheckAllReady checks whether all objects of the item are ready. It returns nil if they are, and otherwise the error
// of Wait. If an object cannot be read, it returns the error of the request. If `bound` is greater than 0, it limits
// how long the item waits. Otherwise the item waits as long as its Landscaper job may take. An object that was ready
// before is not read again if a watch shows that it has not changed since.
func (r *Run) CheckAllReady(ctx context.Context, bound time.Duration) error {
	waiting, err := listUnready(ctx, r)
	if err != nil || len(waiting) == 0 {
		return err
	}
	reason, after := waiting[0].reason, r.PollInterval()
	if more := len(waiting) - 1; more > 0 {
		reason = fmt.Sprintf("%s (and %d more)", reason, more)
	}
	for _, one := range waiting {
		if one.recheck > 0 {
			after = min(after, one.recheck)
		}
	}
	err = r.NewWaitError("readiness", bound, reason, after)
	if _, _, waits := deployerlib.AsWait(err); waits && slices.ContainsFunc(waiting, func(u unreadyObject) bool { return u.hasChanged(r.Cluster) }) {
		r.item.triggers.NotifyChange()
	}
	return err
}

// readyVersions contains, for each object of an item, the version in which the object was last ready.
type readyVersions struct {
	mu  sync.Mutex
	all map[apply.Ref]observe.Version
	// uncertain contains the objects whose readiness was uncertain when they were last checked. It is nil if there are
	// none.
	uncertain map[apply.Ref]bool
}

// get returns the version in which an object was last ready.
func (s *readyVersions) get(ref apply.Ref) observe.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[ref]
}

func (s *readyVersions) set(ref apply.Ref, ready observe.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[apply.Ref]observe.Version{}
	}
	s.all[ref] = ready
}

// setUncertain records whether the readiness of an object is uncertain.
func (s *readyVersions) setUncertain(ref apply.Ref, uncertain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !uncertain {
		delete(s.uncertain, ref)
		return
	}
	if s.uncertain == nil {
		s.uncertain = map[apply.Ref]bool{}
	}
	s.uncertain[ref] = true
}

// keepUncertain returns the objects whose readiness is uncertain, and forgets those for which the function `keep`
// returns false.
func (s *readyVersions) keepUncertain(keep func(apply.Ref) bool) []apply.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.uncertain, func(ref apply.Ref, _ bool) bool { return !keep(ref) })
	if len(s.uncertain) == 0 {
		s.uncertain = nil
	}
	return slices.Collect(maps.Keys(s.uncertain))
}

// keep removes the recorded versions of all objects that the given entries do not contain.
func (s *readyVersions) keep(entries []apply.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) <= len(entries) {
		return
	}
	kept := map[apply.Ref]observe.Version{}
	for _, entry := range entries {
		if ready, known := s.all[entry.Ref()]; known {
			kept[entry.Ref()] = ready
		}
	}
	s.all = kept
}

// unreadyObject describes an object that is not ready.
type unreadyObject struct {
	ref     apply.Ref
	reason  string          // empty if the object is ready
	checked observe.Version // empty if the object does not exist
	recheck time.Duration   // the time after which the object may become ready without a change; 0 means never
	finish  apply.Finish    // the new Finish of the object; empty if it has not changed
}

// listUnready returns the objects of the item that are not ready.
func listUnready(ctx context.Context, r *Run) ([]unreadyObject, error) {
	found := make([]unreadyObject, len(r.Inventory.Entries))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentReads)
	for i, entry := range r.Inventory.Entries {
		if entry.UID == "" || entry.Deleting || entry.Finish == apply.FinishGone || isKnownReady(r, entry) {
			continue
		}
		group.Go(func() (err error) {
			found[i], err = checkReady(groupCtx, r, entry)
			return err
		})
	}
	err := errors.Join(group.Wait(), r.storeFinish(found))
	return slices.DeleteFunc(found, func(u unreadyObject) bool { return u.reason == "" }), err
}

// stateless contains the built-in kinds whose objects are ready as soon as they exist.
var stateless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
}

// IsReadyOnCreation reports whether objects of a kind are ready as soon as they exist.
func IsReadyOnCreation(kind schema.GroupKind) bool { return stateless[kind] }

// isKnownReady reports whether the object of an inventory entry is known to be ready, so that it need not be read. An
// object is known to be ready if objects of its kind are ready as soon as they exist, because the last apply has shown
// that it exists. It is also known to be ready if it was ready before and a watch shows that it has not changed since.
func isKnownReady(r *Run, entry apply.Entry) bool {
	ref := entry.Ref()
	return IsReadyOnCreation(ref.GVK().GroupKind()) || r.item.ready.get(ref).UID == entry.UID && WasReady(r, ref)
}

// WasReady reports whether an object in the item's target was ready before and has not changed since, according to a
// watch.
func WasReady(r *Run, ref apply.Ref) bool {
	was := r.item.ready.get(ref)
	if was.UID == "" || r.Cluster == nil {
		return false
	}
	seen, known := r.Cluster.getWatched(ref)
	return known && was == seen.Version()
}

// RecordReady records the version in which an object in the item's target is ready. See WasReady.
func RecordReady(r *Run, ref apply.Ref, live *unstructured.Unstructured) {
	r.item.ready.set(ref, observe.GetVersion(live))
}

// checkReady reads an object and checks whether it is ready. It records the version of a ready object.
func checkReady(ctx context.Context, r *Run, entry apply.Entry) (unreadyObject, error) {
	ref := entry.Ref()
	live, err := r.Cluster.Read(ctx, ref)
	if reason, _, waits := deployerlib.AsWait(err); waits {
		return unreadyObject{ref: ref, reason: ref.String() + ": " + reason, recheck: pollIntervalUnwatched}, nil
	}
	switch {
	case err != nil:
		return unreadyObject{}, err
	case live == nil && entry.Finish == apply.FinishFailed:
		return unreadyObject{ref: ref, reason: ref.String() + " failed and was removed"}, nil
	case live == nil && entry.Finish != "":
		return unreadyObject{ref: ref, finish: apply.FinishGone}, nil
	case live == nil:
		return unreadyObject{ref: ref, reason: ref.String() + " does not exist"}, nil
	}
	out := unreadyObject{ref: ref}
	if finish := apply.GetFinish(live); live.GetUID() == entry.UID && finish != entry.Finish {
		out.finish = finish
	}
	if out.finish == apply.FinishComplete || entry.Finish == apply.FinishComplete && live.GetUID() == entry.UID {
		RecordReady(r, ref, live) // also while it is being deleted
		return out, nil
	}
	if result := r.CheckReadiness(ctx, live); !result.IsReady() {
		out.reason, out.checked, out.recheck = ref.String()+": "+result.Message, observe.GetVersion(live), result.RecheckAfter
		return out, nil
	}
	RecordReady(r, ref, live)
	return out, nil
}

// RecordFinish records in Run.Inventory, in memory, whether an object of the item has finished its work. The object may
// be nil. The next call of SetInventory stores the result.
func (r *Run) RecordFinish(ref apply.Ref, live *unstructured.Unstructured) {
	i := slices.IndexFunc(r.Inventory.Entries, func(e apply.Entry) bool { return e.Ref() == ref })
	if live == nil || i < 0 || r.Inventory.Entries[i].UID != live.GetUID() {
		return
	}
	if finish := apply.GetFinish(live); finish == r.Inventory.Entries[i].Finish {
		return
	}
	r.Inventory.Entries = slices.Clone(r.Inventory.Entries)
	r.Inventory.Entries[i].Finish = apply.GetFinish(live)
}

// storeFinish stores in the inventory which objects have finished their work. It returns the error of SetInventory.
func (r *Run) storeFinish(found []unreadyObject) error {
	entries, changed := slices.Clone(r.Inventory.Entries), false
	for i, one := range found {
		if one.finish != "" {
			entries[i].Finish, changed = one.finish, true
		}
	}
	if !changed {
		return nil
	}
	inventory := r.Inventory
	inventory.Entries = entries
	return r.SetInventory(inventory)
}

// getWatched returns an object as a watch last reported it. It returns false if no watch has reported the object, or if
// the cluster does not serve the kind.
func (c *Cluster) getWatched(ref apply.Ref) (observe.State, bool) {
	resource, err := c.FindResource(ref)
	if err != nil {
		return observe.State{}, false
	}
	return c.watcher.Get(resource, ref.Key())
}

// errLags is the error of a read whose response is outdated.
var errLags = errors.New("the target lags behind")

// Read reads an object. It returns nil, nil if the object is proved not to exist (see package absence). If the cluster
// does not serve the object at the moment, Read returns a [deployerlib.WaitFor] that names the kind. It returns the
// errors of the target. If the target rejects the credentials, the error is an *apply.Error, so that ConvertApplyError
// recognizes it. Read also returns an error if the API server lags behind: it returned an older state than the item's
// last write, or an older state than a watch had reported before the request. Try again in this case.
func (c *Cluster) Read(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK())
	seen, known := c.getWatched(ref) // before the request, because a watch may report a later change before the response arrives
	err := c.addReason(ctx, ref.GVK(), c.Get(ctx, ref.Key(), obj))
	if absence.GetServedVersion(err) == ref.GVK().Version {
		err = c.addReason(ctx, ref.GVK(), c.Get(ctx, ref.Key(), obj)) // another discovery has just found the kind
	}
	absent := absence.ClassifyError(absence.Object{Kind: ref.GVK().GroupKind(), Name: ref.Name}, err)
	switch {
	case absent.IsProved():
		return nil, nil
	case absent == absence.MeaningNotServed:
		return nil, toWaitError(ref.GVK(), err)
	case apierrors.IsUnauthorized(err):
		return nil, &apply.Error{Ref: ref, Message: "read: " + err.Error(), Class: apply.ClassRetry, StatusReason: metav1.StatusReasonUnauthorized}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if known && version.IsOlder(obj.GetResourceVersion(), seen.ResourceVersion) {
		return nil, fmt.Errorf("read %s: %w: it returned version %s, but version %s was already seen",
			ref, errLags, obj.GetResourceVersion(), seen.ResourceVersion)
	}
	return obj, nil
}

// hasChanged reports whether an object has changed since it was checked. It is needed because no event reports changes
// that happened before the item began to follow its objects.
func (u unreadyObject) hasChanged(at *Cluster) bool {
	if u.checked.UID == "" {
		return false
	}
	seen, known := at.getWatched(u.ref)
	return known && seen.Version().IsNewerThan(u.checked)
}
