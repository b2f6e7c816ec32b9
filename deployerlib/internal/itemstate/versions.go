// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourceversion "github.com/deployerkit/deployerkit/internal/version"
)

// maxStaleTime is how long the cache may lag behind before the item is read from the API server. It is also the minimum
// time between two live reads that together prove that resource versions went backwards.
const maxStaleTime = 10 * time.Second

// Reading classifies a version of an item from the cache.
type Reading int

// These are the values of Reading.
const (
	// ReadingCurrent is a version to act on.
	ReadingCurrent Reading = iota
	// ReadingRemoved is a version of an item that no longer exists at the API server. Its delete event follows.
	ReadingRemoved
	// ReadingStale is a version that is older than a version that this process has written or read live. The event of
	// the newer version leads to a reconcile.
	ReadingStale
	// ReadingSuspect is a version that has been stale for so long that the newer version may not exist any more. A live
	// read must check this.
	ReadingSuspect
)

// versions guards against stale reads of one item.
type versions struct {
	newest         string    // newest resourceVersion that a write or a live read of this process has returned
	removed        types.UID // the UID of an item that no longer exists at the API server, although the cache may still contain it
	staleSince     instant   // when the cache was first found to lag behind, or was last checked with a live read
	regressed      instant   // when a live read first returned a version older than the version in `newest`
	awaited        bool      // a reconcile waits for the event of the version in `newest`
	changedByOther bool      // another client changed the item, and no reconcile has acted on the change yet
}

// isBehind reports whether a version is older than v.newest.
func (v *versions) isBehind(version string) bool { return v.newest != "" && isOlder(version, v.newest) }

// isKnown reports whether a version is v.newest or an older version. The event of such a version requires no reconcile,
// because this process already knows all versions up to v.newest: each of its writes succeeds only if it is based on
// the newest version. After a change by another client, includes returns false until a reconcile has acted on the
// change.
func (v *versions) isKnown(version string) bool {
	return !v.changedByOther && v.newest != "" && !isOlder(v.newest, version)
}

// checkRead determines whether a version from the cache is current, stale, or a version of an item that no longer
// exists.
func (v *versions) checkRead(uid types.UID, version string, now time.Time) Reading {
	if uid != "" && v.removed == uid {
		return ReadingRemoved
	}
	v.awaited = v.isBehind(version)
	switch {
	case !v.awaited:
		v.staleSince = 0
		return ReadingCurrent
	case v.staleSince == 0:
		v.staleSince = toInstant(now)
	case now.Sub(v.staleSince.toTime()) >= maxStaleTime:
		v.staleSince = toInstant(now)
		return ReadingSuspect
	}
	return ReadingStale
}

// updateNewest sets v.newest to the given version if that version is newer.
func (v *versions) updateNewest(version string) {
	if v.newest == "" || isOlder(v.newest, version) {
		v.newest = version
	}
}

// confirm records the version that a live read returned. If the version is older than v.newest or than one of the
// versions in the parameter `others`, the response may be stale, and confirm does not accept the version. There is one
// exception. If etcd is restored from a backup, resource versions go backwards. A second old response proves this if it
// arrives at least 10 seconds (the constant `maxStaleTime`) after the first one and there was no newer response in
// between. In that case, confirm accepts the version, and the result `regressed` is true.
func (v *versions) confirm(version string, others []string, now time.Time) (accepted, regressed bool) {
	old := v.isBehind(version) || slices.ContainsFunc(others, func(other string) bool { return isOlder(version, other) })
	switch {
	case !old:
		v.regressed = 0
		v.updateNewest(version)
		return true, false
	case v.regressed == 0:
		v.regressed = toInstant(now)
	case now.Sub(v.regressed.toTime()) >= maxStaleTime:
		*v = versions{newest: version, changedByOther: true}
		return true, true
	}
	return false, false
}

// isOlder reports whether resourceVersion a comes before b. If the versions cannot be compared, isOlder returns false.
func isOlder(a, b string) bool { return resourceversion.IsOlder(a, b) }
