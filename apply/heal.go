// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Drift describes an object that others changed since the item wrote it, and that the engine is about to correct.
type Drift struct {
	Ref      Ref
	Resource schema.GroupVersionResource
	UID      types.UID
	// Live is the object as it was read, and Fields are the paths that differ from the manifest. Both are empty if
	// the change was seen by a watch.
	Live   *unstructured.Unstructured
	Fields []string
}

// maxDriftFields limits how many fields a Drift names.
const maxDriftFields = 8

// postpones reports whether an object that others changed is left as it is for now. live is the object that was read
// and after is what it would become. Both may be nil.
func (r *run) postpones(o *object, s *slot, live, after *unstructured.Unstructured) bool {
	if r.options.MayHeal == nil || r.options.Force || r.dry || s.UID == "" || s.Hash != o.hash {
		return false
	}
	d := Drift{Ref: o.ref, Resource: o.kind.resource, UID: s.UID, Live: live}
	if live != nil && after != nil {
		walk := &differing{hide: r.hide, secret: true}
		walk.walk("", live.Object, after.Object)
		for _, field := range walk.out[:min(len(walk.out), maxDriftFields)] {
			d.Fields = append(d.Fields, field.Path)
		}
	}
	if r.options.MayHeal(d) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Unchanged++
	r.report.Postponed = append(r.report.Postponed, o.ref)
	return true
}
