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

// applyStrategies maps each update strategy to the strategy of package apply.
var applyStrategies = map[UpdateStrategy]apply.Strategy{
	StrategyApply: apply.StrategyApply, StrategyReplace: apply.StrategyUpdate, StrategyRecreate: apply.StrategyRecreate, StrategyOnDelete: apply.StrategyOnDelete,
}

// ToDesired converts the children of a response into the input of the apply engine. It sends no requests. Call Default
// first. The mapper of the target determines which kinds are cluster-scoped. Kinds that it does not know count as
// namespaced. If the mapper is nil, all kinds count as namespaced. If home is true, the target is the cluster of the
// item. If Tracking.OwnerReference is set as well, the children in the item's namespace get an owner reference to the
// item. The error is an apply.Errors that contains all errors of all children, each with the path of the field.
func (o *Options) ToDesired(item *lsv1alpha1.DeployItem, response *SyncResponse, mapper meta.RESTMapper, home bool) ([]apply.Desired, error) {
	s := &desiredBuilder{
		Options: o, item: item, mapper: mapper, setsOwnerReferences: home && o.Tracking != nil && o.Tracking.OwnerReference, seen: map[apply.Ref]string{},
	}
	for i, child := range response.Children {
		s.add(fmt.Sprintf("children[%d]", i), child)
	}
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	return s.desired, nil
}

// desiredBuilder contains the data that one call of Desired needs.
type desiredBuilder struct {
	*Options

	item                *lsv1alpha1.DeployItem
	mapper              meta.RESTMapper
	setsOwnerReferences bool                 // children in the item's namespace get an owner reference
	seen                map[apply.Ref]string // the first path of each child in the response; the keys are references without version
	written             map[apply.Ref]bool   // children that earlier runs have written; see the method `hasWritten`
	desired             []apply.Desired
	errs                apply.Errors
}

// objectErrors reports the errors that are found in one object of a response.
type objectErrors struct {
	s   *desiredBuilder
	at  string
	ref apply.Ref
}

func (f *objectErrors) add(path, format string, args ...any) {
	f.s.errs = append(f.s.errs, &apply.Error{
		Ref: f.ref, Path: f.at + path, Message: fmt.Sprintf(format, args...), Class: apply.ClassPermanent,
	})
}

// add adds the objects in one element of SyncResponse.Children.
func (s *desiredBuilder) add(at string, child any) {
	all, err := objects.Read(child)
	if err != nil {
		(&objectErrors{s: s, at: at}).add("", "%s", err.Error())
		return
	}
	for _, m := range all {
		s.addObject(at+m.Place, m)
	}
}

// addObject checks one object, completes it, and adds it to the desired objects.
func (s *desiredBuilder) addObject(at string, m objects.Object) {
	m.FillKind(s.Scheme, func(gvk schema.GroupVersionKind) bool {
		_, err := s.findKind(gvk)
		return err == nil
	})
	clean(m.Body)
	object := &unstructured.Unstructured{Object: m.Body}
	f := &objectErrors{s: s, at: at, ref: apply.ToRef(object)}
	before := len(s.errs)
	kind := s.check(f, m)
	if len(s.errs) > before {
		return
	}
	s.fillNamespace(object)
	f.ref = apply.ToRef(object)
	s.checkPlace(f)
	d := apply.Desired{Object: object, Strategy: applyStrategies[kind.Update], Adoption: cmp.Or(kind.Adopt, apply.AdoptionNever)}
	minimal := isMinimal(m)
	if minimal && (m.Source == nil || !s.hasWritten(f.ref)) {
		d.Policy = apply.PolicyRetain
	} else {
		if minimal {
			d.Hint = emptiedHint
		}
		s.addLabels(f, object)
		s.setOwnerReference(f, object)
	}
	s.desired = append(s.desired, d)
}

// emptiedHint is added to the error if the API server rejects a child that contains no fields.
const emptiedHint = "the handler returned this typed child without any fields, which removes all fields of the object; return Child.Keep() to leave the object unchanged"

// hasWritten reports whether an earlier run has written a child. This matters if the handler returns the child as a
// typed object without fields. If an earlier run has written the child, its fields are removed. Otherwise the object in
// the target is left unchanged.
func (s *desiredBuilder) hasWritten(ref apply.Ref) bool {
	if s.written == nil {
		s.written = map[apply.Ref]bool{}
		status, err := decodeStatus(s.item.Status.ProviderStatus)
		if err != nil {
			return false // the run has already failed because of this error
		}
		for _, entry := range status.inventory.Entries {
			s.written[toID(entry.Ref())] = entry.Hash != ""
		}
	}
	return s.written[toID(ref)]
}

// check reports all invalid fields of an object that the handler returned. It returns the configuration of the object's
// kind.
func (s *desiredBuilder) check(f *objectErrors, m objects.Object) ChildKind {
	checkFields(m.Body, f.add)
	switch {
	case f.ref.Kind == "" || f.ref.APIVersion == "":
		f.add("", "lacks apiVersion or kind")
		return ChildKind{}
	case f.ref.Name == "":
		f.add(".metadata.name", "is required")
	}
	kind, err := s.findKind(f.ref.GVK())
	if err != nil {
		f.add(".kind", "%s", err.Error())
	}
	return kind
}

// fillNamespace sets the namespace of a child that has none. It uses the item's namespace if this namespace is allowed,
// and otherwise the first allowed namespace. If the kind is cluster-scoped, it removes the namespace.
func (s *desiredBuilder) fillNamespace(object *unstructured.Unstructured) {
	if s.isClusterScoped(object.GroupVersionKind()) {
		object.SetNamespace("")
		return
	}
	if object.GetNamespace() != "" {
		return
	}
	namespace := s.item.Namespace
	if !s.isAllowed(namespace) {
		namespace = s.Namespaces[0]
	}
	object.SetNamespace(namespace)
}

func (s *desiredBuilder) isClusterScoped(gvk schema.GroupVersionKind) bool {
	if s.mapper == nil {
		return false
	}
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// isAllowed reports whether children may be in a namespace.
func (s *desiredBuilder) isAllowed(namespace string) bool {
	allowed := s.getNamespaces(s.item)
	return slices.Contains(allowed, namespace) || slices.Contains(allowed, AnyNamespace)
}

// checkPlace reports an error for a child in a namespace that is not allowed, and for a child that the response
// contains twice.
func (s *desiredBuilder) checkPlace(f *objectErrors) {
	if f.ref.Namespace != "" && !s.isAllowed(f.ref.Namespace) {
		f.add(".metadata.namespace", "%q is not allowed; the allowed namespaces are %q", f.ref.Namespace, s.getNamespaces(s.item))
	}
	id := toID(f.ref)
	if first, found := s.seen[id]; found {
		f.add("", "is the same object as %s", first)
		return
	}
	s.seen[id] = f.at
}

// addLabels adds the labels of the options to an object.
func (s *desiredBuilder) addLabels(f *objectErrors, object *unstructured.Unstructured) {
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
				f.add(".metadata.labels["+key+"]", "is set by Options.Tracking")
			}
			all[key] = tracking[key]
		}
	}
	object.SetLabels(all)
}

// setOwnerReference adds an owner reference to an object in the namespace of the item, which makes the item the
// controller of the object.
func (s *desiredBuilder) setOwnerReference(f *objectErrors, object *unstructured.Unstructured) {
	if !s.setsOwnerReferences || f.ref.Namespace != s.item.Namespace {
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
		f.add(".metadata.ownerReferences", "must be a list")
		return
	}
	others = slices.DeleteFunc(others, func(one any) bool {
		reference, _ := one.(map[string]any)
		return reference["uid"] == owner["uid"] // the object has the reference if the handler returns an observed child
	})
	metadata["ownerReferences"] = append(others, owner)
}
