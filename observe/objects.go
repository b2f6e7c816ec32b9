// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
)

// maxBytes bounds the total size of the whole objects that one watch stores, in bytes. The objects are compressed.
const maxBytes = 512 << 20

// These constants determine how long GetObject waits for the watch, and how often it checks.
const (
	maxLag           = time.Second
	lagCheckInterval = 5 * time.Millisecond
)

// WatchObjects does the same as Watch, but stores the whole objects of the resource, without managedFields. GetObject
// and ListObjects return these objects. Call WatchObjects before Watch for the same resource. Watch then uses the same
// watch. In the opposite order, WatchObjects ends the watch that stores only metadata and opens another one.
// WatchObjects requires Options.DynamicClient.
func (w *Watcher) WatchObjects(ctx context.Context, gvr schema.GroupVersionResource, namespaces ...string) (Coverage, error) {
	w.storeWhole(gvr)
	return w.Watch(ctx, gvr, namespaces...)
}

// storeWhole causes new watches of a resource to store whole objects. It ends the watches of the resource that store
// only metadata.
func (w *Watcher) storeWhole(gvr schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.whole[gvr] || w.opts.DynamicClient == nil {
		return
	}
	w.whole[gvr] = true
	for in, s := range w.stores {
		if in.resource == gvr {
			w.stopSource(s.source)
		}
	}
}

// ListObjects returns the sorted names of all stored objects of an item, including the objects of an earlier item with
// the same name. While the watch is interrupted, the result is the state before the interruption.
func (w *Watcher) ListObjects(gvr schema.GroupVersionResource, owner ownership.Owner) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[types.NamespacedName]bool{}
	for in, s := range w.stores {
		if in.resource != gvr || !s.whole {
			continue
		}
		for _, key := range listKeys(owner) {
			for _, r := range s.index.objects[key] {
				found[r.toNamespacedName()] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// GetObject returns a copy of a whole object as the watch last reported it. If the watch has not seen the item's last
// write yet, GetObject waits for at most a second. The result is nil if the object does not exist or does not carry the
// owner label. The result `current` is false if the watch is interrupted or has still not seen the write.
func (w *Watcher) GetObject(ctx context.Context, gvr schema.GroupVersionResource, name types.NamespacedName) (obj *unstructured.Unstructured, current bool) {
	r, p, lags, current := w.findObject(gvr, newName(name))
	if lags {
		_ = wait.PollUntilContextTimeout(ctx, lagCheckInterval, maxLag, false, func(context.Context) (bool, error) {
			r, p, lags, current = w.findObject(gvr, newName(name))
			return !lags, nil
		})
	}
	return r.decode(p), current
}

// findObject returns the stored object and the packer of its content, without waiting. The result `current` is true if
// the watch works and has seen the item's last write. The result `lags` is true if the watch works but has not seen
// that write yet. If the watch does not work, both are false.
func (w *Watcher) findObject(gvr schema.GroupVersionResource, id name) (r *storedObject, p *packer, lags, current bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.findStore(gvr, id.namespace.Value())
	if s == nil {
		return nil, nil, false, false
	}
	r, known := s.objects[id], s.version
	if r != nil {
		known = r.version
	}
	e := w.baselines.find(gvr, id)
	lags = s.isLive() && e != nil && version.IsOlder(known, e.version)
	return r, &s.packer, lags, s.isLive() && !lags
}

// index finds the objects of a store by the name of their item, and whole objects also by the UID of their item. The
// name is needed if an item was deleted and created again: the item has a new UID then, but its earlier objects still
// carry the old one.
type index struct {
	objects map[uint64][]*storedObject
	bytes   int // total size of the whole objects
}

func (x *index) add(r *storedObject) {
	for _, key := range r.listKeys() {
		if x.objects == nil {
			x.objects = map[uint64][]*storedObject{}
		}
		x.objects[key] = append(x.objects[key], r)
	}
	x.bytes += r.size()
}

func (x *index) remove(r *storedObject) {
	for _, key := range r.listKeys() {
		x.objects[key] = slices.DeleteFunc(x.objects[key], func(other *storedObject) bool { return other == r })
		if len(x.objects[key]) == 0 {
			delete(x.objects, key)
		}
	}
	x.bytes -= r.size()
}

// listKeys returns the keys under which the objects of an item are stored in an index.
func listKeys(owner ownership.Owner) []uint64 {
	keys := []uint64{hashKey(string(owner.UID)), hashName(owner)}
	if owner.LandscapeAlias != "" {
		owner.Landscape = owner.LandscapeAlias
		keys = append(keys, hashName(owner))
	}
	return keys
}

// hashName returns the key that all items with the same name share. The text of this key differs from every UID,
// because a UID contains no slash.
func hashName(owner ownership.Owner) uint64 {
	return hashKey(string(owner.Landscape) + "/" + owner.Namespace + "/" + owner.Name)
}

var keySeed = maphash.MakeSeed()

// hashKey returns the hash of a text. The hash takes less memory than the text.
func hashKey(text string) uint64 { return maphash.String(keySeed, text) }

// newStoredObject is like newStoredMetadata, but also stores the content of the object. The UID and the resource
// version are not part of the content, because the result contains them anyway.
func newStoredObject(obj *unstructured.Unstructured, p *packer) *storedObject {
	r := newStoredMetadata(obj)
	obj.SetManagedFields(nil)
	obj.SetUID("")
	obj.SetResourceVersion("")
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return r // cannot happen, because the object was decoded from JSON
	}
	if r.details == nil {
		r.details = &details{}
	}
	r.details.content = p.pack(raw)
	return r
}

// listKeys returns the keys under which an index contains an object. The key of the UID is needed only for whole
// objects.
func (r *storedObject) listKeys() []uint64 {
	switch {
	case r.size() > 0:
		return []uint64{hashKey(r.item.Value()), r.mark}
	case r.mark != 0:
		return []uint64{r.mark}
	}
	return nil
}

// size returns the size of the stored content in bytes, or 0 if only metadata is stored.
func (r *storedObject) size() int {
	if r.details == nil {
		return 0
	}
	return len(r.details.content)
}

// decode decodes the stored content, which p has packed. It returns nil if only metadata is stored.
func (r *storedObject) decode(p *packer) *unstructured.Unstructured {
	if r == nil || r.size() == 0 {
		return nil
	}
	raw, err := p.unpack(r.details.content)
	out := &unstructured.Unstructured{}
	if err != nil || utiljson.Unmarshal(raw, &out.Object) != nil {
		return nil // does not happen, because the content was packed from JSON
	}
	out.SetUID(r.uid)
	out.SetResourceVersion(r.version)
	return out
}
