// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/upkeep"
)

// look is the version of an object that a run saw last.
type look struct {
	version string
	// ready means that the object was found ready at that version.
	ready bool
	// heard means that its component listens to it.
	heard bool
}

// Memory is what is known about the objects of one item between its runs. If it is lost, this costs reads and nothing
// else. It discards events of a watch that report nothing new, such as those of the item's own writes.
type Memory struct {
	mu      sync.Mutex
	looks   map[watch.Object]look
	held    map[watch.Object]*unstructured.Unstructured // objects whose content was requested
	cluster *upkeep.Cluster                             // whose watches are followed, or nil
	stop    func()                                      // ends following them
	ran     bool
	running bool
	changed map[watch.Object]bool // changes during a run
	tell    func(watch.Object)    // called for each of them that is news, unless it is nil

	references    map[string]*referenced // by component
	again         bool                   // one of them changed during a run that did not see it
	wakeLater     func()                 // triggers a run after one of them changed
	tellReference func(string) bool      // visits a component again during a run; returns false if it cannot
	lastReference time.Time              // when one of them last triggered a run

	// Exports are the stored exports, or nil if they are not known. Only the current call uses them.
	Exports map[string]json.RawMessage
}

// memoryKey is the key of the memory among what upkeep keeps about an item.
type memoryKey struct{}

func newMemory() *Memory {
	return &Memory{looks: map[watch.Object]look{}, held: map[watch.Object]*unstructured.Unstructured{}, references: map[string]*referenced{}}
}

// MemoryOf returns the memory of the item of a run.
func MemoryOf(run *upkeep.Run) *Memory {
	return run.Value(memoryKey{}, func() any { return newMemory() }).(*Memory)
}

// Begin records that a run has begun, and follows changes of the item's objects in the cluster from now on. cluster may
// be nil. wake is called for a change between runs.
func (m *Memory) Begin(cluster *upkeep.Cluster, item types.UID, wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran, m.running, m.changed = true, true, map[watch.Object]bool{}
	if m.cluster == cluster {
		return
	}
	m.unfollow()
	if m.cluster = cluster; cluster == nil {
		return
	}
	m.drop() // its content belongs to another cluster
	m.stop = cluster.Watcher().Follow(item, func(o watch.Object) {
		if m.notice(o) {
			wake()
		}
	})
}

// HasRun reports whether the item had a run in this process.
func (m *Memory) HasRun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ran
}

// End records that the run is over. It reports whether something changed during the run that the run did not see.
func (m *Memory) End() (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
	again, m.again = m.again, false
	for o := range m.changed {
		again = again || m.isNews(o)
	}
	m.changed = nil
	return again
}

// Forgotten stops following changes, because the item is gone or is being deleted.
func (m *Memory) Forgotten() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unfollow()
	m.cluster = nil
	m.drop()
}

// drop discards what is known. The caller holds the lock.
func (m *Memory) drop() {
	m.looks, m.held = map[watch.Object]look{}, map[watch.Object]*unstructured.Unstructured{}
	for _, one := range m.references {
		one.follower.Stop()
	}
	clear(m.references)
}

// unfollow stops following changes. The caller holds the lock.
func (m *Memory) unfollow() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// notice handles a change that a watch reports. It reports whether the item should run now.
func (m *Memory) notice(o watch.Object) bool {
	m.mu.Lock()
	if !m.running {
		defer m.mu.Unlock()
		return m.isNews(o)
	}
	m.changed[o] = true
	tell := m.tell
	if tell != nil && !m.isNews(o) {
		tell = nil
	}
	m.mu.Unlock()
	if tell != nil {
		tell(o)
	}
	return false
}

// During sets the functions that are called with news during a run. Either may be nil.
func (m *Memory) During(tell func(watch.Object), tellReference func(component string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell, m.tellReference = tell, tellReference
}

// isNews reports whether an object is newer than the last run saw it. The caller holds the lock.
func (m *Memory) isNews(o watch.Object) bool {
	last, known := m.looks[o]
	if !known || !last.heard || m.cluster == nil {
		return false
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	return !there || isNewer(seen.ResourceVersion, last.version)
}

// isNewer reports whether version a is not b, and is not known to be older.
func isNewer(a, b string) bool {
	return a != b && !version.Older(a, b)
}

// saw records the version at which a run saw an object, unless it already saw a newer one.
func (m *Memory) saw(o watch.Object, version string, heard bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.looks[o]
	if last.heard = heard; !known || isNewer(version, last.version) {
		last.version, last.ready = version, false
	}
	m.looks[o] = last
}

// judged records whether an object was found ready at a version.
func (m *Memory) judged(o watch.Object, version string, ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.looks[o]
	last.version, last.ready = version, ready
	m.looks[o] = last
}

// wasReady reports whether an object is known to be still ready.
func (m *Memory) wasReady(o watch.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.looks[o]
	if !last.ready || m.cluster == nil {
		return false
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	return there && seen.ResourceVersion == last.version
}

// hold keeps the content of an object for the next run. It must not be changed any more.
func (m *Memory) hold(o watch.Object, live *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[o] = live
}

// content returns the content of an object if a watch knows that it has not changed. Otherwise it returns nil.
func (m *Memory) content(o watch.Object) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.held[o]
	if live == nil || m.cluster == nil {
		return nil
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	if !there || seen.ResourceVersion != live.GetResourceVersion() {
		return nil
	}
	return live
}

// Keep forgets all objects except those of the inventory.
func (m *Memory) Keep(objects map[watch.Object]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := func(o watch.Object) bool { return !objects[o] }
	maps.DeleteFunc(m.looks, func(o watch.Object, _ look) bool { return gone(o) })
	maps.DeleteFunc(m.held, func(o watch.Object, _ *unstructured.Unstructured) bool { return gone(o) })
}
