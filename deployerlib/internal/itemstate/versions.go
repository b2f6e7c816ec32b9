// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourceversion "github.com/deployerkit/deployerkit/internal/version"
)

// suspicion is how long the cache may lag behind before a live read is made, and the minimum time between two live
// reads that prove that resource versions went backwards.
const suspicion = 10 * time.Second

// Reading classifies a version of an item from the cache.
type Reading int

// The readings of a version.
const (
	// ReadingCurrent is a version to act on.
	ReadingCurrent Reading = iota
	// ReadingReleased is a version of an item that no longer exists at the API server. Its delete event follows.
	ReadingReleased
	// ReadingStale is a version that is older than one that this process has written or read live.
	// The event of the newer version leads to a reconcile.
	ReadingStale
	// ReadingSuspect is a version that has been stale for so long that only a live read can say
	// whether the newer version still exists.
	ReadingSuspect
)

// versions guards against stale reads of one item.
type versions struct {
	newest     string    // newest resourceVersion that a write or a live read of this process has shown
	awaited    bool      // a reconcile waits for the event of newest
	foreign    bool      // a write met a change by another client that no reconcile has acted on
	released   types.UID // item that is gone at the API server, whatever the cache shows
	staleSince time.Time // when the cache was first found to lag behind, or was last checked with a live read
	regressed  time.Time // when a live read first returned a version older than newest
}

// lags reports whether a version is older than newest.
func (v *versions) lags(version string) bool { return v.newest != "" && older(version, v.newest) }

// covers reports whether a version is not newer than newest. Every write is based on a known version, so everything
// before a write without conflicts is known.
func (v *versions) covers(version string) bool {
	return !v.foreign && v.newest != "" && !older(v.newest, version)
}

// read judges a version from the cache.
func (v *versions) read(uid types.UID, version string, now time.Time) Reading {
	if uid != "" && v.released == uid {
		return ReadingReleased
	}
	v.awaited = v.lags(version)
	switch {
	case !v.awaited:
		v.staleSince = time.Time{}
		return ReadingCurrent
	case v.staleSince.IsZero():
		v.staleSince = now
	case now.Sub(v.staleSince) >= suspicion:
		v.staleSince = now
		return ReadingSuspect
	}
	return ReadingStale
}

// raise records a version that exists.
func (v *versions) raise(version string) {
	if v.newest == "" || older(v.newest, version) {
		v.newest = version
	}
}

// confirm records a live read. It returns false for a version that is older than newest or one of the others, because
// such a response may be stale and proves nothing. If a second response after a while is still older, and no other
// response came in between, the resource versions of the API server went backwards, as they do when its etcd is
// restored from a backup. In that case regressed is true and the version is accepted.
func (v *versions) confirm(version string, others []string, now time.Time) (accepted, regressed bool) {
	old := v.lags(version) || slices.ContainsFunc(others, func(other string) bool { return older(version, other) })
	switch {
	case !old:
		v.regressed = time.Time{}
		v.raise(version)
		return true, false
	case v.regressed.IsZero():
		v.regressed = now
	case now.Sub(v.regressed) >= suspicion:
		*v = versions{newest: version, foreign: true}
		return true, true
	}
	return false, false
}

// older reports whether resourceVersion a comes before b. Versions that cannot be compared are not older.
func older(a, b string) bool { return resourceversion.Older(a, b) }
