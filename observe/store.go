// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/internal/version"
)

// store stores the objects of a source that carry the owner label, and compares them with the baselines of their items.
// The Watcher's lock guards the fields.
type store struct {
	*source

	packer  packer // compresses whole objects
	objects map[name]*storedObject
	index   index  // finds the objects of an item
	version string // the newest resourceVersion that was seen
}

var errForeign = errors.New("not an object")

// transform reduces an object to what the store keeps of it.
func (s *store) transform(obj any) (any, error) {
	if whole, ok := obj.(*unstructured.Unstructured); ok && s.whole {
		return newStoredObject(whole, &s.packer), nil
	}
	return toStoredObject(obj)
}

// toStored returns what the store keeps of an object. The reflector may have reduced it already.
func (s *store) toStored(obj any) (*storedObject, error) {
	out, _ := s.transform(obj)
	r, ok := out.(*storedObject)
	if !ok {
		return nil, errForeign
	}
	return r, nil
}

// put stores an object that was created or changed.
func (s *store) put(obj any) error {
	r, err := s.toStored(obj)
	if err != nil {
		return err
	}
	id, o := r.name, Object{s.scope.resource, r.toNamespacedName()}
	s.w.mu.Lock()
	if s.hasEnded() {
		s.w.mu.Unlock()
		return nil
	}
	before := s.objects[id]
	if before == nil && len(s.objects) >= maxObjects || s.index.bytes+r.size() > maxBytes {
		s.w.mu.Unlock()
		s.w.handleRefusal(s.source, errTooMany)
		return errTooMany
	}
	s.set(id, r)
	s.version = r.version
	drifts, unknown := s.w.compare(nil, s.scope.resource, id, false), s.w.inventories.itemForMissing(r)
	s.w.mu.Unlock()
	s.w.notifyDrift(drifts)
	s.w.notifyUnknown(unknown)
	if before != nil && before.item != r.item {
		s.notifyChange(before.getItem(), o)
	}
	s.notifyChange(r.getItem(), o)
	return nil
}

// set stores an object, or removes it if r is nil. The caller holds the lock.
func (s *store) set(id name, r *storedObject) {
	if before := s.objects[id]; before != nil {
		s.index.remove(before)
	}
	if r == nil {
		delete(s.objects, id)
		return
	}
	s.objects[id] = r
	s.index.add(r)
}

// remove removes an object that was deleted or lost its owner label.
func (s *store) remove(obj any) error {
	r, err := s.toStored(obj)
	if err != nil {
		return err
	}
	id, o := r.name, Object{s.scope.resource, r.toNamespacedName()}
	s.w.mu.Lock()
	if s.hasEnded() {
		s.w.mu.Unlock()
		return nil
	}
	var ignoring types.UID
	if before := s.objects[id]; before != nil {
		ignoring = s.w.inventories.itemForIgnored(before)
	}
	s.set(id, nil)
	s.version = r.version
	var drifts []Drift
	if e := s.w.baselines.find(s.scope.resource, id); e != nil && !version.IsOlder(r.version, e.version) {
		drifts = s.w.compare(nil, s.scope.resource, id, true)
	}
	s.w.mu.Unlock()
	s.w.notifyDrift(drifts)
	s.w.notifyUnknown(ignoring)
	s.notifyChange(r.getItem(), o)
	return nil
}

// replace replaces all objects by a complete list.
func (s *store) replace(list []any, listed string) error {
	objects, listedIndex := make(map[name]*storedObject, len(list)), index{}
	for _, obj := range list {
		if r, err := s.toStored(obj); err == nil {
			objects[r.name] = r
			listedIndex.add(r)
		}
	}
	s.w.mu.Lock()
	if s.hasEnded() {
		s.w.mu.Unlock()
		return nil
	}
	if version.IsOlder(listed, s.version) {
		s.w.baselines.resetVersions(s.scope)
	}
	if listedIndex.bytes > maxBytes {
		s.w.mu.Unlock()
		s.w.handleRefusal(s.source, errTooMany)
		return errTooMany
	}
	before, isFirst := s.objects, !s.synced
	s.objects, s.index, s.version, s.synced = objects, listedIndex, listed, true
	s.w.stopNarrower(s.scope)
	s.notify()
	drifts := s.w.compareAll(s.scope)
	unknown := s.w.inventories.listAffected(before, objects, isFirst)
	s.w.mu.Unlock()
	s.w.notifyDrift(drifts)
	s.w.notifyUnknown(unknown...)
	s.notifyDifferences(before, objects)
	return nil
}

// notifyDifferences compares two lists, and reports the objects that differ.
func (s *store) notifyDifferences(before, now map[name]*storedObject) {
	for id, r := range before {
		if other := now[id]; other == nil || other.item != r.item {
			s.notifyChange(r.getItem(), Object{s.scope.resource, id.toNamespacedName()})
		}
	}
	for id, r := range now {
		if other := before[id]; other == nil || other.version != r.version {
			s.notifyChange(r.getItem(), Object{s.scope.resource, id.toNamespacedName()})
		}
	}
}

// notifyChange calls the functions that OnChange registered for an item. If the store contains whole objects, it also
// calls the functions that OnObjectChange registered. It does not hold the lock during the calls.
func (s *store) notifyChange(item types.UID, o Object) {
	for _, f := range s.w.listChangeFuncs(item) {
		f(o)
	}
	if s.whole {
		for _, f := range s.w.objectChange.list(s.w) {
			f(item)
		}
	}
}

// setVersion stores the resource version of a bookmark event.
func (s *store) setVersion(version string) { s.version = version }

// isNeeded reports whether the source must stay open. This is the case if the baseline of an item contains an object
// that the source watches. A store of whole objects also stays open if it contains the whole cluster or any object,
// because ListObjects also returns objects that no baseline contains.
func (s *store) isNeeded() bool {
	if s.whole && (s.scope.namespace == "" || len(s.objects) > 0) {
		return true
	}
	return s.w.baselines.hasAny(s.scope)
}

// reset removes all objects.
func (s *store) reset() { s.objects, s.index = nil, index{} }

// onRefused returns a function that reports the loss of the watch to the items with an object in the scope.
func (s *store) onRefused() func() {
	items := sets.New[types.UID]()
	if s.synced {
		items = s.w.baselines.listItems(s.scope)
	}
	return func() {
		for item := range items {
			for _, f := range s.w.watchLost.list(s.w) {
				f(item)
			}
		}
	}
}
