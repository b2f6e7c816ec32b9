// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/internal/patching"
	"github.com/deployerkit/deployerkit/patch"
)

// hasFunctions reports whether one of the patches contains functions.
func hasFunctions(patches []*patch.Patch) bool {
	for _, p := range patches {
		if p.NumFuncs() > 0 {
			return true
		}
	}
	return false
}

// readRaw sets s.raw to the body that the API server has stored, if one of the patches contains functions and s.raw is
// not set yet. Functions need this body, because the Go type shows neither undeclared fields nor whether an empty value
// is stored. If the item does not exist, s.raw stays nil.
func (s *Session) readRaw(ctx context.Context, patches []*patch.Patch) error {
	if s.raw != nil || !hasFunctions(patches) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(itemKind)
	s.writer.options.Telemetry.RecordRequest(RequestGet)
	err := s.writer.options.Live.Get(ctx, s.key, raw)
	if notfound.IsProof(err) || err == nil && raw.GetUID() != s.read.UID {
		return nil // the write that follows detects that the item does not exist
	}
	if err != nil {
		return &writeError{err: err}
	}
	s.raw = raw.Object
	return nil
}

var itemKind = lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem")

// applyPatchToRaw applies the changes of di and then one patch to the stored body, and converts the result to the Go
// type. A change of a field that the Go type does not declare is a *patch.FieldError.
func applyPatchToRaw(raw map[string]any, di *lsv1alpha1.DeployItem, p *patch.Patch) (*lsv1alpha1.DeployItem, error) {
	base, err := applyToStored(raw, di)
	if err != nil {
		return nil, err
	}
	wanted, err := p.ApplyTo(base)
	if err != nil {
		return nil, err
	}
	out := &lsv1alpha1.DeployItem{}
	if err := patching.Typed(func(item *lsv1alpha1.DeployItem) error { item.DeepCopyInto(out); return nil })(wanted); err != nil {
		return nil, err
	}
	known, err := applyToStored(base, out)
	if err != nil {
		return nil, err
	}
	if path := findIneffectiveChange(nil, base, wanted, known); path != nil {
		return nil, &patch.FieldError{Path: jsondiff.PathOf(path...), Reason: fmt.Sprintf("%T has no such field", di)}
	}
	return out, nil
}

// applyToStored applies the changes of di to a copy of the stored body, and returns the copy.
func applyToStored(raw map[string]any, di *lsv1alpha1.DeployItem) (map[string]any, error) {
	body := jsondiff.DeepCopy(raw)
	err := patching.Typed(func(item *lsv1alpha1.DeployItem) error { di.DeepCopyInto(item); return nil })(body)
	return body, err
}

// findIneffectiveChange returns the path of a change that the Go type does not support, or nil if there is no such
// change. The parameter `wanted` is base with all changes. The parameter `known` is base with only those changes that
// the Go type supports.
func findIneffectiveChange(path []string, base, wanted, known any) []string {
	if jsondiff.Equal(base, wanted) || jsondiff.IsZero(base) && jsondiff.IsZero(wanted) {
		return nil
	}
	want, isObject := wanted.(map[string]any)
	if have, wasObject := base.(map[string]any); isObject && (wasObject || base == nil) {
		got, _ := known.(map[string]any)
		keys := maps.Clone(want)
		maps.Copy(keys, have)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if found := findIneffectiveChange(append(slices.Clone(path), key), have[key], want[key], got[key]); found != nil {
				return found
			}
		}
		return nil
	}
	if jsondiff.Equal(base, known) {
		return path
	}
	return nil
}
