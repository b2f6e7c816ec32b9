// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Applied remembers what was applied in a run that takes several calls of the engine. The zero value is empty and
// ready to use. An Applied is safe for concurrent use. Losing it only costs additional reads, and writes that change
// nothing.
type Applied struct {
	mu      sync.Mutex
	objects map[Ref]state
}

// state identifies an object and the manifest that was applied to it.
type state struct {
	uid  types.UID
	hash string
}

// add records that an object matches its manifest.
func (a *Applied) add(id Ref, s state) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects == nil {
		a.objects = map[Ref]state{}
	}
	a.objects[id] = s
}

// has reports whether the object was applied from this manifest.
func (a *Applied) has(id Ref, s state) bool {
	if a == nil || s.uid == "" || s.hash == "" {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[id] == s
}

// wasApplied reports whether the object needs nothing more in this run, unless it is gone or its key shows a foreign
// change. It excludes the strategy OnDelete, which never writes more than the item's marks anyway.
func (r *run) wasApplied(o *object, s *slot) bool {
	return o.Strategy != OnDelete && s.Hash == o.hash && r.options.Applied.has(o.ref.id(), state{s.UID, o.hash})
}

// isLeftAs reports whether a key shows no change since the item's last write. Without a key in the inventory, no
// change is visible and nothing is repaired.
func (s *slot) isLeftAs(key ownership.Key) bool { return s.Key == "" || s.Key == key }
