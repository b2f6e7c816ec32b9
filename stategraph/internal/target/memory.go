// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// seenVersion describes the version of an object that a run last saw.
type seenVersion struct {
	observe.Version

	listened bool // the component of the object listens to the object
}

// Memory stores data about the objects of one item between the runs of the item. With this data, the deployer can
// ignore watch events that report nothing new, such as the events of its own writes. If the data is lost, the deployer
// reads the objects again.
type Memory struct {
	mu       sync.Mutex
	seen     map[observe.Object]seenVersion
	contents map[observe.Object]*unstructured.Unstructured // objects whose content a component requested
	cluster  *managed.Cluster                              // the cluster whose watches are followed, or nil
	stop     func()                                        // stops following the watches
	hasRun   bool
	running  bool
	changed  map[observe.Object]bool // objects that changed during a run
	onChange func(observe.Object)    // called during a run if an object has changed since the run saw it; may be nil

	references       map[string]*foundObjects // by component
	missedChange     bool                     // a referenced object changed during a run, and the run did not see the change
	triggerRun       func()                   // triggers a run after a referenced object has changed
	recheckComponent func(string) bool        // asks the current run to recheck a component; returns false if the run will not do so
	lastReference    time.Time                // the time of the last run that a change of a referenced object triggered

	// Exports are the stored exports, or nil if they are not known. Only the current call uses them.
	Exports map[string]json.RawMessage
}

// memoryKey is the key under which managed stores the Memory of an item.
type memoryKey struct{}

func newMemory() *Memory {
	return &Memory{seen: map[observe.Object]seenVersion{}, contents: map[observe.Object]*unstructured.Unstructured{}, references: map[string]*foundObjects{}}
}

// GetMemory returns the Memory of the item that the run is for. It creates the Memory if there is none.
func GetMemory(run *managed.Run) *Memory {
	return run.GetOrCreateValue(memoryKey{}, func() any { return newMemory() }).(*Memory)
}

// BeginRun records that a run has begun. Unless the cluster is nil, BeginRun also starts to follow changes of the
// item's objects in the cluster. Between runs, the function `wake` is called for each change that no run has seen.
func (m *Memory) BeginRun(cluster *managed.Cluster, item types.UID, wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hasRun, m.running, m.changed = true, true, map[observe.Object]bool{}
	if m.cluster == cluster {
		return
	}
	m.stopFollowing()
	if m.cluster = cluster; cluster == nil {
		return
	}
	m.drop() // the stored objects belong to another cluster
	m.stop = cluster.Watcher().OnChange(item, func(o observe.Object) {
		if m.handleChange(o) {
			wake()
		}
	})
}

// HasRun reports whether the item had a run in this process.
func (m *Memory) HasRun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hasRun
}

// CompleteRun records that the run is over. It returns true if an object changed during the run and the run did not see
// the change.
func (m *Memory) CompleteRun() (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
	again, m.missedChange = m.missedChange, false
	for o := range m.changed {
		again = again || m.hasChanged(o)
	}
	m.changed = nil
	return again
}

// Forget stops following changes. It is called when the item is gone or is being deleted.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopFollowing()
	m.cluster = nil
	m.drop()
}

// drop discards all stored objects and references. The caller holds the lock.
func (m *Memory) drop() {
	m.seen, m.contents = map[observe.Object]seenVersion{}, map[observe.Object]*unstructured.Unstructured{}
	for _, one := range m.references {
		one.subscription.Stop()
	}
	clear(m.references)
}

// stopFollowing stops following changes. The caller holds the lock.
func (m *Memory) stopFollowing() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
}

// handleChange is called when a watch reports a change of an object. It returns true if the change must trigger a run
// now.
func (m *Memory) handleChange(o observe.Object) bool {
	m.mu.Lock()
	if !m.running {
		defer m.mu.Unlock()
		return m.hasChanged(o)
	}
	m.changed[o] = true
	tell := m.onChange
	if tell != nil && !m.hasChanged(o) {
		tell = nil
	}
	m.mu.Unlock()
	if tell != nil {
		tell(o)
	}
	return false
}

// SetChangeHandlers sets the functions that are called when objects change during a run. Both functions may be nil.
func (m *Memory) SetChangeHandlers(tell func(observe.Object), tellReference func(component string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onChange, m.recheckComponent = tell, tellReference
}

// hasChanged reports whether a watch has a newer version of an object than the version that the last run saw. The
// caller holds the lock.
func (m *Memory) hasChanged(o observe.Object) bool {
	last, known := m.seen[o]
	if !known || !last.listened || m.cluster == nil {
		return false
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	return !there || seen.Version().IsNewerThan(last.Version)
}

// recordSeen records the version of an object that a run has seen, unless a newer version is already recorded. If the
// component of the object listens to the object, listened is true.
func (m *Memory) recordSeen(o observe.Object, seen observe.Version, listened bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.seen[o]
	if last.listened = listened; !known || seen.IsNewerThan(last.Version) {
		last.Version = seen
	}
	m.seen[o] = last
}

// recordChecked records that a run has checked the readiness of an object, and which version of the object it has
// checked.
func (m *Memory) recordChecked(o observe.Object, checked observe.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.seen[o]
	last.Version = checked
	m.seen[o] = last
}

// storeContent stores the content of an object for the next run. The caller must not modify the object afterwards.
func (m *Memory) storeContent(o observe.Object, live *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[o] = live
}

// getContent returns the stored object if a watch shows that it is up to date. Otherwise getContent returns nil.
func (m *Memory) getContent(o observe.Object) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.contents[o]
	if live == nil || m.cluster == nil {
		return nil
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	if !there || seen.Version() != observe.GetVersion(live) {
		return nil
	}
	return live
}

// KeepOnly discards the data about all objects except the given ones.
func (m *Memory) KeepOnly(objects map[observe.Object]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := func(o observe.Object) bool { return !objects[o] }
	maps.DeleteFunc(m.seen, func(o observe.Object, _ seenVersion) bool { return gone(o) })
	maps.DeleteFunc(m.contents, func(o observe.Object, _ *unstructured.Unstructured) bool { return gone(o) })
}
