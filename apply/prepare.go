// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// object is a Desired that is ready to be sent.
type object struct {
	Desired // with policy and strategy set, and Object stamped and without fields that only the API server sets

	ref  Ref
	kind kind
	hash string
}

// untouched reports whether the object is neither written nor deleted.
func (o *object) untouched() bool { return o.Policy == Ignore || o.Policy == Retain }

// isWatched reports whether a watch can save calls for the object.
func (o *object) isWatched() bool {
	return !o.untouched() && o.Policy != Immutable && (o.isTracked() || o.Strategy == OnDelete)
}

// isTracked reports whether the object is written by server-side apply, so that it has an ownership key.
func (o *object) isTracked() bool { return o.Strategy == Apply || o.Strategy == Recreate }

// preparing turns desired objects into objects that can be sent, and collects all faults.
type preparing struct {
	*Engine

	owner   ownership.Owner
	defined definitions
	seen    map[Ref]bool
	hide    *redact.Redactor
	faults  Errors
	// singly means that lists are refused.
	singly bool
}

// prepare expands lists, checks everything and finds the kinds. It only asks the cluster for its kinds. All faults of
// the manifests are reported at once.
func (e *Engine) prepare(ctx context.Context, owner ownership.Owner, desired []Desired) ([]*object, *redact.Redactor, error) {
	p := e.preparing(owner)
	objects, err := p.objects(ctx, p.expand(desired))
	return objects, p.hide, err
}

func (e *Engine) preparing(owner ownership.Owner) *preparing {
	return &preparing{Engine: e, owner: owner, defined: definitions{}, seen: map[Ref]bool{}, hide: redact.New(shortestSecret, e.options.Hide...)}
}

// objects prepares the result of expand. After that, hide is complete.
func (p *preparing) objects(ctx context.Context, single []Desired) ([]*object, error) {
	p.defined.learn(single)
	out := make([]*object, 0, len(single))
	for _, d := range single {
		if o := p.object(d); o != nil {
			out = append(out, o)
		}
	}
	for _, fault := range p.faults {
		fault.Reason = clean(p.hide, fault.Reason)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return out, p.faults.err()
}

func (p *preparing) fault(err *Error) { p.faults = append(p.faults, err) }

// expand copies the manifests and replaces lists by their items.
func (p *preparing) expand(desired []Desired) []Desired {
	out := []Desired{}
	for _, d := range desired {
		if d.Object == nil || len(d.Object.Object) == 0 {
			p.fault(invalid(Ref{}, "", "a manifest is empty"))
			continue
		}
		content, err := clone(d.Object.Object)
		if err != nil {
			p.fault(invalid(RefOf(d.Object), "", "not JSON: %v", err))
			continue
		}
		items, isList := content["items"].([]any)
		if !isList {
			d.Object = &unstructured.Unstructured{Object: content}
			out = append(out, d)
			continue
		}
		if p.singly {
			p.fault(invalid(RefOf(d.Object), "", "is a list; hand in its items one by one"))
			continue
		}
		for _, item := range items {
			one := d
			body, _ := item.(map[string]any)
			one.Object = &unstructured.Unstructured{Object: body}
			out = append(out, p.expand([]Desired{one})...)
		}
	}
	return out
}

// clone copies through JSON. Unlike DeepCopy, it accepts all Go numbers.
func clone(in map[string]any) (map[string]any, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := unmarshal(data, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// object checks and completes one object. It returns nil after a fault.
func (p *preparing) object(d Desired) *object {
	normalise(d.Object)
	o := &object{Desired: d, ref: RefOf(d.Object)}
	faults := len(p.faults)
	p.check(o)
	if len(p.faults) > faults || !p.place(o) {
		return nil
	}
	if o.ref.isSecret() {
		hideSecret(p.hide, d.Object.Object["data"])
	}
	o.Policy, o.Strategy = cmp.Or(d.Policy, Manage), cmp.Or(d.Strategy, p.options.Strategy)
	annotate(o.Object, o.AnnotateBeforeCreate)
	p.owner.Stamp(o.Object)
	o.hash = hash(o)
	return o
}

// place finds the kind, and so whether the object has a namespace.
func (p *preparing) place(o *object) bool {
	found, err := p.kindOf(o.ref, p.defined)
	switch {
	case meta.IsNoMatchError(err):
		p.fault(invalid(o.ref, ".kind", "the cluster does not know %s, and no manifest defines it", o.ref.GVK()))
		return false
	case err != nil:
		p.fault(classify(o.ref, err, nil))
		return false
	}
	o.kind = found
	switch {
	case found.namespaced && o.ref.Namespace == "":
		p.fault(invalid(o.ref, ".metadata.namespace", "is required: %s is namespaced", o.ref.Kind))
		return false
	case !found.namespaced:
		o.Object.SetNamespace("")
		o.ref.Namespace = ""
	}
	if p.seen[o.ref.id()] {
		p.fault(invalid(o.ref, "", "is there twice"))
		return false
	}
	p.seen[o.ref.id()] = true
	return true
}

// annotate merges annotations over those of the object.
func annotate(obj *unstructured.Unstructured, more map[string]string) {
	if len(more) == 0 {
		return
	}
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	obj.SetAnnotations(all)
}

// hash covers everything whose change causes a write. A change between the strategies that write by server-side apply
// does not cause one.
func hash(o *object) string {
	strategy := o.Strategy
	if strategy == Recreate || strategy == OnDelete {
		strategy = Apply
	}
	data, err := json.Marshal([]any{o.Object.Object, strategy, o.PatchAfterDeployment})
	if err != nil {
		return "" // cannot happen because the object was copied through JSON; an empty hash is applied each time
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
