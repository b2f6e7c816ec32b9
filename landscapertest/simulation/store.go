// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// object is a stored object. Stored objects are never changed; a change stores a new object.
type object = *unstructured.Unstructured

type objectKey = types.NamespacedName

func newObject(kind schema.GroupVersionKind) object {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj
}

func keyOf(obj object) objectKey {
	return objectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// change is an entry of the log from which watches are served. A creation has no state before it, a deletion none after it.
type change struct {
	version       int64
	resource      *resource
	before, after object
	gone          object // the last state of a deleted object, in the version of its deletion
}

// maxLog is the maximum number of changes that a Server keeps for watches. Watches that continue from an older version
// have expired.
const maxLog = 2000

// commit stores a change and tells the watches and the observer. The caller holds the lock.
func (s *Server) commit(r *resource, by *Request, before, after object) object {
	s.version++
	c := change{version: s.version, resource: r, before: before, after: after}
	if after != nil {
		after.SetResourceVersion(strconv.FormatInt(s.version, 10))
		r.objects[keyOf(after)] = after
	} else {
		c.gone = before.DeepCopy()
		c.gone.SetResourceVersion(strconv.FormatInt(s.version, 10))
		delete(r.objects, keyOf(before))
	}
	s.log = append(s.log, c)
	if len(s.log) > maxLog {
		s.expire(s.log[maxLog/2].version)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	if s.observe != nil {
		s.observe(Write{Request: *by, Version: s.version, Before: before, After: after})
	}
	return cmp.Or(after, c.gone)
}

// expire removes the changes up to a version from the log.
func (s *Server) expire(version int64) {
	s.log = slices.DeleteFunc(s.log, func(c change) bool { return c.version <= version })
	s.expired = max(s.expired, version)
}

// create stores a new object.
func (s *Server) create(r *resource, by *Request, obj object) (object, error) {
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(fmt.Sprintf("%s%05d", obj.GetGenerateName(), s.version))
	}
	key := keyOf(obj)
	switch {
	case key.Name == "":
		return nil, apierrors.NewBadRequest("metadata.name: Required value: name or generateName is required")
	case r.objects[key] != nil:
		return nil, apierrors.NewAlreadyExists(r.groupResource(), key.Name)
	case obj.GetResourceVersion() != "":
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	s.created++
	obj.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d", s.cluster, s.created)))
	obj.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	if r.HasStatus {
		obj.SetGeneration(1)
		unstructured.RemoveNestedField(obj.Object, statusSubresource)
	}
	return s.commit(r, by, nil, obj), nil
}

// update stores a new state of an object. The new state must be a copy, which update changes.
func (s *Server) update(r *resource, by *Request, before, after object) (object, error) {
	if err := checkPreconditions(r, before, after.GetUID(), after.GetResourceVersion()); err != nil {
		return nil, err
	}
	s.keepFields(r, by.Subresource, before, after)
	if before.GetDeletionTimestamp() != nil && addsFinalizer(before, after) {
		return nil, newInvalid(r, before.GetName(), "metadata.finalizers", "no new finalizers can be added if the object is being deleted")
	}
	if isUnchanged(before, after) {
		return before, nil
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		gone := after
		gone.SetResourceVersion(before.GetResourceVersion())
		return s.commit(r, by, gone, nil), nil
	}
	return s.commit(r, by, before, after), nil
}

// checkPreconditions returns an error if the object has another UID or version than the client expects.
func checkPreconditions(r *resource, obj object, uid types.UID, version string) error {
	if uid != "" && uid != obj.GetUID() {
		return apierrors.NewConflict(r.groupResource(), obj.GetName(), fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", uid, obj.GetUID()))
	}
	if version != "" && version != obj.GetResourceVersion() {
		return apierrors.NewConflict(r.groupResource(), obj.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// keepFields copies the fields that an update cannot change from the old state of an object, and sets the generation.
func (s *Server) keepFields(r *resource, subresource string, before, after object) {
	if subresource == statusSubresource {
		status, found := after.Object[statusSubresource]
		fields := after.GetManagedFields()
		after.Object = before.DeepCopy().Object
		delete(after.Object, statusSubresource)
		if found {
			after.Object[statusSubresource] = status
		}
		after.SetManagedFields(fields)
		return
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	after.SetGeneration(before.GetGeneration())
	after.SetResourceVersion(before.GetResourceVersion())
	if !r.HasStatus {
		return
	}
	delete(after.Object, statusSubresource)
	if status, found := before.Object[statusSubresource]; found {
		after.Object[statusSubresource] = status
	}
	if !equality.Semantic.DeepEqual(withoutMetadata(before), withoutMetadata(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
}

func withoutMetadata(obj object) map[string]any {
	fields := maps.Clone(obj.Object)
	delete(fields, "metadata")
	return fields
}

// isUnchanged reports whether two states differ in nothing but their times of managed fields. Such an update stores
// nothing.
func isUnchanged(before, after object) bool {
	if !equality.Semantic.DeepEqual(withoutMetadata(before), withoutMetadata(after)) {
		return false
	}
	return equality.Semantic.DeepEqual(withoutTimes(before), withoutTimes(after))
}

func withoutTimes(obj object) map[string]any {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	obj = (&unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}).DeepCopy()
	fields := obj.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	obj.SetManagedFields(fields)
	obj.SetResourceVersion("")
	return obj.Object
}

func addsFinalizer(before, after object) bool {
	return slices.ContainsFunc(after.GetFinalizers(), func(f string) bool { return !slices.Contains(before.GetFinalizers(), f) })
}

// remove deletes an object, or marks it for deletion if it has finalizers.
func (s *Server) remove(r *resource, by *Request, before object, p *metav1.Preconditions) (object, error) {
	if p != nil {
		var uid types.UID
		if p.UID != nil {
			uid = *p.UID
		}
		version := ""
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := checkPreconditions(r, before, uid, version); err != nil {
			return nil, err
		}
	}
	if len(before.GetFinalizers()) == 0 {
		return s.commit(r, by, before, nil), nil
	}
	if before.GetDeletionTimestamp() != nil {
		return before, nil
	}
	marked := before.DeepCopy()
	marked.SetDeletionTimestamp(new(metav1.Now().Rfc3339Copy()))
	marked.SetDeletionGracePeriodSeconds(new(int64(0)))
	if r.HasStatus {
		marked.SetGeneration(before.GetGeneration() + 1)
	}
	return s.commit(r, by, before, marked), nil
}
