// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/observe"
)

// Report describes the results of a call and the objects that are still unfinished.
type Report struct {
	// Applied is the number of objects that were written, even if the write changed nothing. Unchanged is the number of
	// objects that needed no write. Deleted is the number of objects that were deleted and are gone. An object that is
	// deleted in order to be created again is listed in Waiting until it is gone, and then counts as Applied.
	Applied, Unchanged, Deleted int
	// Waiting lists the unfinished objects. Objects that were not tried, because they depend on unfinished objects, come
	// last. If the list is not empty, call again, at the latest after the time that Report.RetryAfter returns.
	Waiting []Waiting
	// Postponed lists the objects that other writers changed and that the engine did not correct because
	// Options.CanCorrect returned false. They count as Unchanged.
	Postponed []Ref
	// Owned describes the objects for which a watch can detect changes, with their state after this call. Apply,
	// AfterDeployment and Session.Report set it.
	Owned []observe.BaselineObject
	// Skipped lists the objects that were not deleted because they belong to none of the deletion groups. They stay in the
	// cluster and in the inventory.
	Skipped []Ref
}

// Waiting describes an unfinished object and explains why it is unfinished.
type Waiting struct {
	Ref     Ref
	Message string
	// NotServed means that the cluster does not serve the object at the moment. No watch reports when this changes.
	NotServed bool
}

// String returns the object and the reason as text for users.
func (w Waiting) String() string { return w.Ref.String() + ": " + w.Message }

// IsDone reports whether no further call is needed.
func (r Report) IsDone() bool { return len(r.Waiting) == 0 }

// HasUnserved reports whether the cluster does not serve one of the unfinished objects at the moment.
func (r Report) HasUnserved() bool {
	return slices.ContainsFunc(r.Waiting, func(w Waiting) bool { return w.NotServed })
}

// retryInterval is the time after which the caller should call again if objects are unfinished. Another call is
// necessary, because the engine receives no event when an object is finished. Most objects are finished after about
// this time.
const retryInterval = 2 * time.Second

// RetryAfter returns how long the caller may wait before the next call. It is zero if no further call is needed.
func (r Report) RetryAfter() time.Duration {
	if r.IsDone() {
		return 0
	}
	return retryInterval
}

// Reason names one unfinished object, explains why it is unfinished, and gives the number of other unfinished objects,
// all in one line.
func (r Report) Reason() string {
	switch len(r.Waiting) {
	case 0:
		return ""
	case 1:
		return r.Waiting[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", r.Waiting[0], len(r.Waiting)-1)
}

// Event describes a notable change of an object, or the reason why an object was not changed. It contains the Ref of
// the object, a Reason, which is one of the Reason constants, and a Message of one line without secret values.
type Event = object.Event

// These constants are the reasons of events.
const (
	// ReasonAdopted means that the object already existed without an owner and now belongs to this item.
	ReasonAdopted = object.ReasonAdopted
	// ReasonMigrated means that managedFields contained an API version that the cluster does not serve any more, and that
	// the engine has replaced this version.
	ReasonMigrated = object.ReasonMigrated
	// ReasonTakenOver means that the object belonged to an earlier item with the same name or to Landscaper's own
	// deployer, and now belongs to this item.
	ReasonTakenOver = object.ReasonTakenOver
	// ReasonShared means that the object belongs to another item and now also to this item.
	ReasonShared = object.ReasonShared
	// ReasonReleased means that the object no longer belongs to this item but stays in the cluster. Either other items
	// own the object too, or the object existed before the item.
	ReasonReleased = object.ReasonReleased
	// ReasonLeftAlone means that the object was not changed. Either the policy does not allow changing it, because it does
	// not belong to this item. Or the object was to be deleted, but it is not known to belong to this item: its label
	// names another item, or neither a label nor an annotation nor a field manager names this item.
	ReasonLeftAlone = object.ReasonLeftAlone
	// ReasonMayRemain means that the object was to be deleted and is no longer tracked, but may still exist, because the
	// credentials do not allow reading it (see Options.SkipUnreadable).
	ReasonMayRemain = object.ReasonMayRemain
)

// DriftedObject describes an object that other writers have changed and that the engine is about to correct.
type DriftedObject struct {
	Ref      Ref
	Resource schema.GroupVersionResource
	UID      types.UID
	// Live is the object as it was read, and Fields lists the paths that differ from the manifest. Both are empty if a
	// watch detected the change.
	Live   *unstructured.Unstructured
	Fields []string
}

// maxDriftFields limits the number of fields that a DriftedObject lists.
const maxDriftFields = 8

// listDriftFields returns the paths of the fields that differ between a live object and the object after its
// correction. It returns nil if one of the arguments is nil.
func listDriftFields(live, after *unstructured.Unstructured) []string {
	if live == nil || after == nil {
		return nil
	}
	var out []string
	found := fields.Diff(live.Object, after.Object)
	for _, field := range found[:min(len(found), maxDriftFields)] {
		out = append(out, field.Path)
	}
	return out
}
