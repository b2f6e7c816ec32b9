// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/lists"
)

// desiredObject is a Desired that is ready to be written.
type desiredObject struct {
	Desired // Policy and Strategy are set; Object contains the owner label and annotations, but no fields that only the API server sets

	ref  Ref
	kind kind
	hash string
	// unserved is not nil if the cluster does not serve the kind of the object at the moment, and the inventory does not
	// contain the object. It is an error of class Wait. Such an object is not claimed, because it is not known whether
	// it has a namespace.
	unserved *Error
}

// isUntouched reports whether the policy forbids writing and deleting the object while it is desired.
func (o *desiredObject) isUntouched() bool {
	return o.Policy == PolicyIgnore || o.Policy == PolicyRetain
}

// isWatched reports whether a watch can make requests for the object unnecessary. The engine then sends no request if
// the watch shows that the object is unchanged.
func (o *desiredObject) isWatched() bool {
	return !o.isUntouched() && o.Policy != PolicyImmutable && (o.isTracked() || o.Strategy == StrategyOnDelete)
}

// isTracked reports whether the object is written by server-side apply and therefore has a fingerprint.
func (o *desiredObject) isTracked() bool { return o.strategy().IsTracked }

// strategy returns the row of the object's strategy in the table of the strategies.
func (o *desiredObject) strategy() *decide.Strategy { return decide.FindStrategy(string(o.Strategy)) }

// dataKinds lists the kinds for which the deletion of an object destroys data. The default Adoption for them is
// AdoptionNever.
var dataKinds = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:                                          true,
	{Kind: "PersistentVolume"}:                                   true,
	{Kind: "PersistentVolumeClaim"}:                              true,
	{Group: "apiextensions.k8s.io", Kind: object.KindDefinition}: true,
}

// getAdoption returns the Adoption that applies to the object.
func (o *desiredObject) getAdoption(options *Options) Adoption {
	switch {
	case o.Adoption != "":
		return o.Adoption
	case options.Adoption != "":
		return options.Adoption
	case dataKinds[o.ref.GVK().GroupKind()]:
		return AdoptionNever
	}
	return AdoptionIfUnowned
}

// manifest returns the object with the properties that follow from its policy, its strategy and its adoption.
func (o *desiredObject) manifest(options *Options) *decide.Manifest {
	adoption := o.getAdoption(options)
	return &decide.Manifest{
		Ref: o.ref, Resource: o.kind.resource, Object: o.Object, Hash: o.hash, Strategy: o.strategy(), Unchanged: o.Unchanged,
		IsCreateOnly: o.Policy == PolicyImmutable, SkipIfForeign: o.Policy == PolicyFallback, CanShare: o.Policy == PolicyManage || o.Policy == PolicyKeep,
		RejectUnowned: options.RefuseUnowned && adoption == AdoptionNever, ReleaseAdopted: adoption != AdoptionAlways,
		PatchAfterDeployment: o.PatchAfterDeployment,
	}
}

// preparer validates desired objects, completes them for the write, and collects the errors in all manifests.
type preparer struct {
	run  *run
	seen map[Ref]bool
	errs Errors
	// rejectLists rejects manifests that are lists.
	rejectLists bool
}

// prepare expands lists, validates all manifests, determines the kinds and completes the manifests for the write. It
// sends requests only to determine kinds. It returns the errors in all manifests together. It adds the values of all
// Secrets to the redactor. If singly is true, it rejects manifests that are lists.
func (r *run) prepare(ctx context.Context, desired []Desired, singly bool) ([]*desiredObject, error) {
	p := &preparer{run: r, seen: map[Ref]bool{}, rejectLists: singly}
	single := p.expand(desired)
	r.kinds.addDefinitions(single)
	out := make([]*desiredObject, 0, len(single))
	for _, d := range single {
		if o := p.prepareObject(ctx, d); o != nil {
			out = append(out, o)
		}
	}
	for _, fault := range p.errs {
		fault.Message = cleanText(r.hide, fault.Message)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return out, p.errs.err()
}

func (p *preparer) addError(err *Error) { p.errs = append(p.errs, err) }

// expand copies the manifests and replaces each list by its items, including the items of lists in the list.
func (p *preparer) expand(desired []Desired) []Desired {
	out := []Desired{}
	for _, d := range desired {
		if d.Object == nil || len(d.Object.Object) == 0 {
			p.addError(newInvalidError(Ref{}, "", "a manifest is empty"))
			continue
		}
		content, err := jsondiff.RoundTrip(d.Object.Object)
		if err != nil {
			p.addError(newInvalidError(ToRef(d.Object), "", "is not JSON: %v", err))
			continue
		}
		if p.rejectLists && lists.IsList(content) {
			p.addError(newInvalidError(ToRef(d.Object), "", "is a list; pass its items individually"))
			continue
		}
		items, err := lists.Flatten(content, nil)
		if err != nil {
			p.addError(newInvalidError(ToRef(d.Object), "", "%v", err))
		}
		for _, item := range items {
			one := d
			one.Object = &unstructured.Unstructured{Object: item.Body}
			out = append(out, one)
		}
	}
	return out
}

// prepareObject validates and completes one object. It returns nil if the manifest is invalid.
func (p *preparer) prepareObject(ctx context.Context, d Desired) *desiredObject {
	normalizeManifest(d.Object)
	o := &desiredObject{Desired: d, ref: ToRef(d.Object)}
	faults := len(p.errs)
	p.check(o)
	if len(p.errs) > faults || !p.findKind(ctx, o) {
		return nil
	}
	if isSecret(o.ref) {
		maskSecret(p.run.hide, d.Object.Object["data"])
	}
	dropStatus(o)
	o.Policy, o.Strategy = cmp.Or(d.Policy, PolicyManage), cmp.Or(d.Strategy, p.run.options.Strategy)
	addAnnotations(o.Object, o.AnnotateBeforeCreate)
	p.run.rules.Owner.Mark(o.Object)
	if o.Policy == PolicyKeep {
		_ = unstructured.SetNestedField(o.Object.Object, string(PolicyKeep), "metadata", "annotations", ownership.AnnotationPolicy)
	}
	o.hash = o.strategy().Hash(o.Object, o.PatchAfterDeployment)
	return o
}

// findKind determines the kind of the object, and thus whether the object needs a namespace.
func (p *preparer) findKind(ctx context.Context, o *desiredObject) bool {
	found, err := p.run.kinds.find(o.ref)
	if err == nil && found.namespaced && o.ref.Namespace == "" && !found.fromItem {
		if err = p.run.cluster.prover.Refresh(ctx); err == nil { // the scope may have changed
			found, err = p.run.kinds.find(o.ref)
		}
	}
	switch {
	case absence.CanMeanNotServed(err):
		found = p.getUnservedKind(o, err)
	case err != nil:
		p.addError(newRequestError(o.ref, err, nil))
		return false
	case found.namespaced && o.ref.Namespace == "":
		p.addError(newInvalidError(o.ref, ".metadata.namespace", "is required, because %s is namespaced", o.ref.Kind))
		return false
	case !found.namespaced:
		o.Object.SetNamespace("")
		o.ref.Namespace = ""
	}
	o.kind = found
	if p.seen[toID(o.ref)] {
		p.addError(newInvalidError(o.ref, "", "is listed more than once"))
		return false
	}
	p.seen[toID(o.ref)] = true
	return true
}

// getUnservedKind returns what is known about the kind of an object that the cluster does not serve at the moment. If
// the inventory contains the object, its entry shows whether it has a namespace.
func (p *preparer) getUnservedKind(o *desiredObject, err error) kind {
	whole := o.ref
	whole.Namespace = ""
	switch {
	case !p.run.objects.get(o.ref).Gone:
	case !p.run.objects.get(whole).Gone:
		o.Object.SetNamespace("")
		o.ref = whole
	default:
		o.unserved = newRequestError(o.ref, err, p.run.hide)
	}
	return kind{namespaced: o.ref.Namespace != ""}
}

// addAnnotations adds annotations to the object, and replaces existing annotations with the same keys.
func addAnnotations(obj *unstructured.Unstructured, more map[string]string) {
	if len(more) == 0 {
		return
	}
	all := map[string]string{}
	maps.Copy(all, obj.GetAnnotations())
	maps.Copy(all, more)
	obj.SetAnnotations(all)
}

// kind contains the properties of a kind that the engine needs in order to write an object.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// hasStatus means that the kind is known to have a status subresource.
	hasStatus bool
	// fromItem means that the item itself installs the CustomResourceDefinition of the kind. The cluster may not serve
	// such a kind yet.
	fromItem bool
	// definition is the CustomResourceDefinition of the kind if fromItem is true.
	definition Ref
}

// kinds determines the kinds of objects, first from the CustomResourceDefinitions in the manifests and then from the
// cluster. The manifests come first because the mapper caches a failed lookup for a while. It must therefore not look
// up a kind that the cluster does not serve yet.
type kinds struct {
	mapper meta.RESTMapper

	mu      sync.Mutex
	defined map[schema.GroupVersionKind]kind // the kinds that the CustomResourceDefinitions in the manifests define
}

func (k *kinds) find(ref Ref) (kind, error) {
	gvk := ref.GVK()
	k.mu.Lock()
	found, ok := k.defined[gvk]
	k.mu.Unlock()
	if ok {
		return found, nil
	}
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind{}, err
	}
	return kind{resource: mapping.Resource, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace, hasStatus: k.hasStatus(gvk)}, nil
}

// hasStatus reports whether the mapper knows that a kind has a status subresource.
func (k *kinds) hasStatus(gvk schema.GroupVersionKind) bool {
	known, ok := k.mapper.(interface {
		HasStatusSubresource(gvk schema.GroupVersionKind) bool
	})
	return ok && known.HasStatusSubresource(gvk)
}

// findResource returns the resource of an entry. If the entry does not contain it, findResource looks it up, unless k
// is nil. If the cluster no longer serves the version of the entry, it is the resource in another version. The result
// is empty if the resource cannot be determined.
func (k *kinds) findResource(s object.Record) schema.GroupVersionResource {
	if k == nil || !s.Resource.Empty() {
		return s.Resource
	}
	found, err := k.find(s.Ref())
	if absence.CanMeanNotServed(err) {
		if mapping, err := k.mapper.RESTMapping(s.Ref().GVK().GroupKind()); err == nil {
			return mapping.Resource
		}
	}
	return found.resource // empty after an error
}

// addDefinitions adds the kinds that the CustomResourceDefinitions in the manifests define.
func (k *kinds) addDefinitions(desired []Desired) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range desired {
		if object.IsDefinition(one.Object.GroupVersionKind().GroupKind()) && one.Policy != PolicyIgnore && one.Policy != PolicyRetain {
			k.add(one.Object.Object)
		}
	}
}

// add adds the kind of a CustomResourceDefinition in all its versions. It ignores errors in the definition, because the
// API server explains such errors better. The caller holds mu.
func (k *kinds) add(definition map[string]any) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition, fields...)
		return value
	}
	group, kindName, plural := text("spec", "group"), text("spec", "names", "kind"), text("spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		subresources, _ := fields["subresources"].(map[string]any)
		gv := schema.GroupVersion{Group: group, Version: name}
		k.defined[gv.WithKind(kindName)] = kind{
			resource: gv.WithResource(plural), namespaced: text("spec", "scope") == "Namespaced", hasStatus: subresources["status"] != nil, fromItem: true,
			definition: ToRef(&unstructured.Unstructured{Object: definition}),
		}
	}
}
