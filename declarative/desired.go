// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// strategyOf maps each update strategy to the strategy of package apply.
var strategyOf = map[UpdateStrategy]apply.Strategy{
	Apply: apply.Apply, Replace: apply.Update, Recreate: apply.Recreate, OnDelete: apply.OnDelete,
}

// Desired converts the children of a response into the input of the apply engine. It sends no requests. Call Default
// first. The mapper of the target determines which kinds are cluster-scoped. Kinds that it does not know count as
// namespaced. If the mapper is nil, all kinds count as namespaced. The parameter `home` reports whether the target is the
// cluster of the item. If it is, and Tracking.OwnerReference is set, the children in the item's namespace get an owner
// reference to the item. The error is an apply.Errors that contains all errors of all children, each with the path of
// the field.
func (o *Options) Desired(item *lsv1alpha1.DeployItem, response *SyncResponse, mapper meta.RESTMapper, home bool) ([]apply.Desired, error) {
	s := &shaping{
		Options: o, item: item, mapper: mapper, owns: home && o.Tracking != nil && o.Tracking.OwnerReference, seen: map[apply.Ref]string{},
	}
	for i, child := range response.Children {
		s.add(fmt.Sprintf("children[%d]", i), child)
	}
	if len(s.faults) > 0 {
		return nil, s.faults
	}
	return s.desired, nil
}

// shaping contains the data that one call of Desired needs.
type shaping struct {
	*Options

	item    *lsv1alpha1.DeployItem
	mapper  meta.RESTMapper
	owns    bool                 // children in the item's namespace get an owner reference
	seen    map[apply.Ref]string // the first path of each child in the response; the keys are references without version
	written map[apply.Ref]bool   // children that earlier runs have written; see the method `wrote`
	desired []apply.Desired
	faults  apply.Errors
}

// faulty reports the errors that are found in one object of a response.
type faulty struct {
	s   *shaping
	at  string
	ref apply.Ref
}

func (f *faulty) fault(path, format string, args ...any) {
	f.s.faults = append(f.s.faults, &apply.Error{
		Ref: f.ref, Path: f.at + path, Reason: fmt.Sprintf(format, args...), Class: apply.Permanent,
	})
}

// add adds the objects in one element of SyncResponse.Children.
func (s *shaping) add(at string, child any) {
	all, err := objects.Read(child)
	if err != nil {
		(&faulty{s: s, at: at}).fault("", "%s", err.Error())
		return
	}
	for _, m := range all {
		s.object(at+m.Place, m)
	}
}

// object checks one object, completes it, and adds it to the desired objects.
func (s *shaping) object(at string, m objects.Object) {
	m.FillKind(s.Scheme, func(gvk schema.GroupVersionKind) bool {
		_, err := s.kindOf(gvk)
		return err == nil
	})
	clean(m.Body)
	object := &unstructured.Unstructured{Object: m.Body}
	f := &faulty{s: s, at: at, ref: apply.RefOf(object)}
	before := len(s.faults)
	kind := s.check(f, m)
	if len(s.faults) > before {
		return
	}
	s.fillNamespace(object)
	f.ref = apply.RefOf(object)
	s.checkPlace(f)
	d := apply.Desired{Object: object, Strategy: strategyOf[kind.Update], Adoption: cmp.Or(kind.Adopt, apply.AdoptNever)}
	minimal := isMinimal(m)
	if minimal && (m.Source == nil || !s.wrote(f.ref)) {
		d.Policy = apply.Retain
	} else {
		if minimal {
			d.Hint = emptiedHint
		}
		s.label(f, object)
		s.own(f, object)
	}
	s.desired = append(s.desired, d)
}

// emptiedHint is added to the error if the API server rejects a child that contains no fields.
const emptiedHint = "the handler returned this typed child without any fields, which removes all fields of the object; return Child.Keep() to leave the object unchanged"

// wrote reports whether an earlier run has written a child. This matters if the handler returns the child as a typed
// object without fields. If an earlier run has written the child, its fields are removed. Otherwise the object in the
// target is left unchanged.
func (s *shaping) wrote(ref apply.Ref) bool {
	if s.written == nil {
		s.written = map[apply.Ref]bool{}
		status, err := decodeStatus(s.item.Status.ProviderStatus)
		if err != nil {
			return false // the run has already failed because of this error
		}
		for _, entry := range status.inventory.Entries {
			s.written[idOf(entry.Ref())] = entry.Hash != ""
		}
	}
	return s.written[idOf(ref)]
}

// check reports all invalid fields of an object that the handler returned. It returns the configuration of the object's
// kind.
func (s *shaping) check(f *faulty, m objects.Object) ChildKind {
	checkFields(m.Body, f.fault)
	switch {
	case f.ref.Kind == "" || f.ref.APIVersion == "":
		f.fault("", "lacks apiVersion or kind")
		return ChildKind{}
	case f.ref.Name == "":
		f.fault(".metadata.name", "is required")
	}
	kind, err := s.kindOf(f.ref.GVK())
	if err != nil {
		f.fault(".kind", "%s", err.Error())
	}
	return kind
}

// fillNamespace sets the namespace of a child that has none. It uses the item's namespace if this namespace is allowed,
// and otherwise the first allowed namespace. If the kind is cluster-scoped, it removes the namespace.
func (s *shaping) fillNamespace(object *unstructured.Unstructured) {
	if s.isClusterScoped(object.GroupVersionKind()) {
		object.SetNamespace("")
		return
	}
	if object.GetNamespace() != "" {
		return
	}
	namespace := s.item.Namespace
	if !s.allows(namespace) {
		namespace = s.Namespaces[0]
	}
	object.SetNamespace(namespace)
}

func (s *shaping) isClusterScoped(gvk schema.GroupVersionKind) bool {
	if s.mapper == nil {
		return false
	}
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// allows reports whether children may be in a namespace.
func (s *shaping) allows(namespace string) bool {
	allowed := s.namespacesFor(s.item)
	return slices.Contains(allowed, namespace) || slices.Contains(allowed, AnyNamespace)
}

// checkPlace reports an error for a child in a namespace that is not allowed, and for a child that the response
// contains twice.
func (s *shaping) checkPlace(f *faulty) {
	if f.ref.Namespace != "" && !s.allows(f.ref.Namespace) {
		f.fault(".metadata.namespace", "%q is not allowed; the allowed namespaces are %q", f.ref.Namespace, s.namespacesFor(s.item))
	}
	id := idOf(f.ref)
	if first, found := s.seen[id]; found {
		f.fault("", "is the same object as %s", first)
		return
	}
	s.seen[id] = f.at
}

// label adds the labels of the options to an object.
func (s *shaping) label(f *faulty, object *unstructured.Unstructured) {
	if len(s.Labels) == 0 && s.Tracking == nil {
		return
	}
	all, own := map[string]string{}, object.GetLabels()
	maps.Copy(all, s.Labels)
	maps.Copy(all, own)
	if s.Tracking != nil {
		tracking := map[string]string{s.Tracking.InstanceLabel: string(s.item.UID), s.Tracking.ManagedByLabel: s.Name}
		for _, key := range slices.Sorted(maps.Keys(tracking)) {
			if value, found := own[key]; found && value != tracking[key] {
				f.fault(".metadata.labels["+key+"]", "is set by Options.Tracking")
			}
			all[key] = tracking[key]
		}
	}
	object.SetLabels(all)
}

// own adds an owner reference to an object in the namespace of the item, which makes the item the controller of the
// object.
func (s *shaping) own(f *faulty, object *unstructured.Unstructured) {
	if !s.owns || f.ref.Namespace != s.item.Namespace {
		return
	}
	owner := map[string]any{
		"apiVersion": lsv1alpha1.SchemeGroupVersion.String(), "kind": "DeployItem",
		"name": s.item.Name, "uid": string(s.item.UID), "controller": true,
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	raw, found := metadata["ownerReferences"]
	others, isList := raw.([]any)
	if found && !isList {
		f.fault(".metadata.ownerReferences", "must be a list")
		return
	}
	others = slices.DeleteFunc(others, func(one any) bool {
		reference, _ := one.(map[string]any)
		return reference["uid"] == owner["uid"] // the object has the reference if the handler returns an observed child
	})
	metadata["ownerReferences"] = append(others, owner)
}
