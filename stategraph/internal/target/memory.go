// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/upkeep"
)

// look describes the version of an object that a run last saw.
type look struct {
	observe.Version

	listened bool // the component of the object listens to the object
}

// Memory stores data about the objects of one item between the runs of the item. With this data, the deployer can
// ignore watch events that report nothing new, such as the events of its own writes. If the data is lost, the deployer
// reads the objects again.
type Memory struct {
	mu      sync.Mutex
	looks   map[observe.Object]look
	held    map[observe.Object]*unstructured.Unstructured // objects whose content a component requested
	cluster *upkeep.Cluster                               // the cluster whose watches are followed, or nil
	stop    func()                                        // stops following the watches
	ran     bool
	running bool
	changed map[observe.Object]bool // objects that changed during a run
	tell    func(observe.Object)    // called during a run if an object has changed since the run saw it; may be nil

	references    map[string]*referenced // by component
	again         bool                   // a referenced object changed during a run, and the run did not see the change
	wakeLater     func()                 // triggers a run after a referenced object has changed
	tellReference func(string) bool      // asks the current run to recheck a component; returns false if the run will not do so
	lastReference time.Time              // the time of the last run that a change of a referenced object triggered

	// Exports are the stored exports, or nil if they are not known. Only the current call uses them.
	Exports map[string]json.RawMessage
}

// memoryKey is the key under which upkeep stores the Memory of an item.
type memoryKey struct{}

func newMemory() *Memory {
	return &Memory{looks: map[observe.Object]look{}, held: map[observe.Object]*unstructured.Unstructured{}, references: map[string]*referenced{}}
}

// MemoryOf returns the Memory of the item that the run is for. It creates the Memory if there is none.
func MemoryOf(run *upkeep.Run) *Memory {
	return run.Value(memoryKey{}, func() any { return newMemory() }).(*Memory)
}

// Begin records that a run has begun. Unless the cluster is nil, Begin also starts to follow changes of the item's
// objects in the cluster. Between runs, the function `wake` is called for each change that no run has seen.
func (m *Memory) Begin(cluster *upkeep.Cluster, item types.UID, wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran, m.running, m.changed = true, true, map[observe.Object]bool{}
	if m.cluster == cluster {
		return
	}
	m.unfollow()
	if m.cluster = cluster; cluster == nil {
		return
	}
	m.drop() // the stored objects belong to another cluster
	m.stop = cluster.Watcher().OnChange(item, func(o observe.Object) {
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

// End records that the run is over. It returns true if an object changed during the run and the run did not see the
// change.
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

// Forgotten stops following changes. It is called when the item is gone or is being deleted.
func (m *Memory) Forgotten() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unfollow()
	m.cluster = nil
	m.drop()
}

// drop discards all stored objects and references. The caller holds the lock.
func (m *Memory) drop() {
	m.looks, m.held = map[observe.Object]look{}, map[observe.Object]*unstructured.Unstructured{}
	for _, one := range m.references {
		one.subscription.Stop()
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

// notice is called when a watch reports a change of an object. It returns true if the change must trigger a run now.
func (m *Memory) notice(o observe.Object) bool {
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

// During sets the functions that are called when objects change during a run. Both functions may be nil.
func (m *Memory) During(tell func(observe.Object), tellReference func(component string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell, m.tellReference = tell, tellReference
}

// isNews reports whether a watch has a newer version of an object than the version that the last run saw. The caller
// holds the lock.
func (m *Memory) isNews(o observe.Object) bool {
	last, known := m.looks[o]
	if !known || !last.listened || m.cluster == nil {
		return false
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	return !there || seen.Version().IsNewerThan(last.Version)
}

// saw records the version of an object that a run has seen, unless a newer version is already recorded. The parameter
// `listened` is true if the component of the object listens to the object.
func (m *Memory) saw(o observe.Object, seen observe.Version, listened bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.looks[o]
	if last.listened = listened; !known || seen.IsNewerThan(last.Version) {
		last.Version = seen
	}
	m.looks[o] = last
}

// judged records that a run has checked the readiness of an object, and which version of the object it has checked.
func (m *Memory) judged(o observe.Object, checked observe.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.looks[o]
	last.Version = checked
	m.looks[o] = last
}

// hold stores the content of an object for the next run. The caller must not modify the object afterwards.
func (m *Memory) hold(o observe.Object, live *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[o] = live
}

// content returns the stored object if a watch shows that it is up to date. Otherwise content returns nil.
func (m *Memory) content(o observe.Object) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.held[o]
	if live == nil || m.cluster == nil {
		return nil
	}
	seen, there := m.cluster.Watcher().Get(o.Resource, o.NamespacedName)
	if !there || seen.Version() != observe.VersionOf(live) {
		return nil
	}
	return live
}

// Keep discards the data about all objects except the given ones.
func (m *Memory) Keep(objects map[observe.Object]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := func(o observe.Object) bool { return !objects[o] }
	maps.DeleteFunc(m.looks, func(o observe.Object, _ look) bool { return gone(o) })
	maps.DeleteFunc(m.held, func(o observe.Object, _ *unstructured.Unstructured) bool { return gone(o) })
}
