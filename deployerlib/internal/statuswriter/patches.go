// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// userPatches contains the changes that hooks and the deployer record with patch.FromContext. Each write includes the
// changes recorded so far.
type userPatches struct {
	noted patch.Patch    // the changes that no write has included yet
	taken []*patch.Patch // the patches that a write has included, but that are not stored yet
}

// take returns all patches that are not stored yet. Changes that are recorded later are part of the next write.
func (p *userPatches) take() []*patch.Patch {
	if noted := p.noted.Take(); !noted.Empty() {
		p.taken = append(p.taken, noted)
	}
	return p.taken
}

// pending reports whether there is something to send.
func (p *userPatches) pending() bool { return len(p.taken) > 0 || !p.noted.Empty() }

// The method `all` returns the patches that are not stored yet, like the method `take`. Unlike `take`, it leaves the
// newly recorded changes in p.noted.
func (p *userPatches) all() []*patch.Patch { return append(slices.Clone(p.taken), &p.noted) }

// markStored removes the patches that a write has stored.
func (p *userPatches) markStored() { p.taken = nil }

// drop removes all patches.
func (p *userPatches) drop() {
	p.taken = nil
	p.noted.Clear()
}

// If the patches cannot be applied, check drops them and returns an error. A session calls check right after user code,
// so that an error stops the attempt early.
func (p *userPatches) check(raw map[string]any, di *lsv1alpha1.DeployItem, who string) error {
	if p.noted.Empty() {
		return nil
	}
	if _, err := overlay(raw, di, p.all()); err != nil {
		p.drop()
		return fmt.Errorf("the patch of %s: %w", who, err)
	}
	return nil
}

// overlay applies the patches to a copy of di and returns the copy. The parameter `raw` is the body that the API server
// has stored, or nil. Functions in the patches receive this body with the changes of di. If raw is nil, the functions
// receive only di. Errors are of type *patchError.
func overlay(raw map[string]any, di *lsv1alpha1.DeployItem, patches []*patch.Patch) (*lsv1alpha1.DeployItem, error) {
	before := di.DeepCopy()
	before.SetGroupVersionKind(itemKind)
	var err error
	if before, err = patched(nil, before, &patch.Patch{}); err != nil { // an empty patch converts the item to the form that other patches return
		return nil, &patchError{err: err}
	}
	after := before
	for _, p := range patches {
		if after, err = patched(raw, after, p); err != nil {
			return nil, &patchError{err: err}
		}
	}
	if err := checkOverlay(before, after); err != nil {
		return nil, &patchError{err: err}
	}
	guard.Protect(&before.Status, &after.Status)
	after.TypeMeta = di.TypeMeta
	di.Spec.DeepCopyInto(&after.Spec)
	return after, nil
}

// patched applies one patch to a copy of di.
func patched(raw map[string]any, di *lsv1alpha1.DeployItem, p *patch.Patch) (*lsv1alpha1.DeployItem, error) {
	if raw != nil && p.Functions() > 0 {
		return patchedRaw(raw, di, p)
	}
	out, err := p.Preview(di)
	if err != nil {
		return nil, err
	}
	return out.(*lsv1alpha1.DeployItem), nil //nolint:forcetypeassert // Preview keeps the type
}

// checkOverlay returns an error if the patches change a field that belongs to the contract or to the API server. It
// also returns an error for changes of the metadata that the API server would refuse, because that refusal would come
// after the status has been stored.
func checkOverlay(before, after *lsv1alpha1.DeployItem) error {
	if _, err := itempatch.Diff(before, after); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(foreignMetadata(before), foreignMetadata(after)) {
		return &patch.FieldError{Path: "metadata", Reason: "must not change, except for labels, annotations, finalizers and ownerReferences"}
	}
	if path := guard.ChangedProtectedField(before, after); path != "" {
		return &patch.FieldError{Path: path, Reason: "must not change, because it belongs to Landscaper's contract"}
	}
	if err := contract.CheckProviderStatus(after.Status.ProviderStatus); err != nil {
		return err
	}
	return checkMetadata(before, after)
}

// foreignMetadata returns the metadata that only the API server writes.
func foreignMetadata(di *lsv1alpha1.DeployItem) metav1.ObjectMeta {
	meta := di.ObjectMeta
	meta.Labels, meta.Annotations, meta.Finalizers, meta.OwnerReferences = nil, nil, nil, nil
	return meta
}

// checkMetadata applies the rules of the API server to the metadata that the patches change.
func checkMetadata(before, after *lsv1alpha1.DeployItem) error {
	path := field.NewPath("metadata")
	faults := field.ErrorList{}
	if !maps.Equal(before.Labels, after.Labels) {
		faults = append(faults, metav1validation.ValidateLabels(after.Labels, path.Child("labels"))...)
	}
	if !maps.Equal(before.Annotations, after.Annotations) {
		faults = append(faults, apivalidation.ValidateAnnotations(after.Annotations, path.Child("annotations"))...)
	}
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		faults = append(faults, apivalidation.ValidateFinalizers(after.Finalizers, path.Child("finalizers"))...)
		if before.DeletionTimestamp != nil {
			faults = append(faults, apivalidation.ValidateNoNewFinalizers(after.Finalizers, before.Finalizers, path.Child("finalizers"))...)
		}
	}
	if !slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, sameOwner) {
		faults = append(faults, apivalidation.ValidateOwnerReferences(after.OwnerReferences, path.Child("ownerReferences"))...)
	}
	if len(faults) == 0 {
		return nil
	}
	return &patch.FieldError{Path: faults[0].Field, Reason: faults[0].Detail} // this error does not contain the refused value
}

func sameOwner(a, b metav1.OwnerReference) bool { return a.String() == b.String() }

// patchError is the error for user patches that cannot be applied.
type patchError struct{ err error }

func (e *patchError) Error() string { return e.err.Error() }
func (e *patchError) Unwrap() error { return e.err }

// IsPatchError reports whether err is the error of user patches that cannot be applied.
func IsPatchError(err error) bool {
	_, ok := errors.AsType[*patchError](err)
	return ok
}

// RefusedPatch converts a *patch.FieldError to an error for the status of an item. A *patch.FieldError names a field
// that the patch must not change. RefusedPatch returns all other errors unchanged, such as an error that a function in
// a patch returned.
func RefusedPatch(err error) error {
	if _, isField := errors.AsType[*patch.FieldError](err); !isField {
		return err
	}
	return lserrors.NewError("CheckDeployItem", "PatchRefused", err.Error(), lsv1alpha1.ErrorInternalProblem)
}

// sameJSON reports whether two raw values are equal as JSON.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, right := any(nil), any(nil)
	return json.Unmarshal(a.Raw, &left) == nil && json.Unmarshal(b.Raw, &right) == nil && equality.Semantic.DeepEqual(left, right)
}
