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
	recorded patch.Patch    // the changes that no write has included yet
	included []*patch.Patch // the patches that a write has included, but that are not stored yet
}

// prepareWrite returns all patches that are not stored yet. Changes that are recorded later are part of the next write.
func (p *userPatches) prepareWrite() []*patch.Patch {
	if noted := p.recorded.MoveToNew(); !noted.IsEmpty() {
		p.included = append(p.included, noted)
	}
	return p.included
}

// hasUnstored reports whether there is something to send.
func (p *userPatches) hasUnstored() bool { return len(p.included) > 0 || !p.recorded.IsEmpty() }

// listUnstored returns the patches that are not stored yet, like prepareWrite. Unlike prepareWrite, it leaves the
// newly recorded changes in p.recorded.
func (p *userPatches) listUnstored() []*patch.Patch {
	return append(slices.Clone(p.included), &p.recorded)
}

// markStored removes the patches that a write has stored.
func (p *userPatches) markStored() { p.included = nil }

// drop removes all patches.
func (p *userPatches) drop() {
	p.included = nil
	p.recorded.Clear()
}

// If the patches cannot be applied, check drops them and returns an error. A session calls check right after user code,
// so that an error stops the attempt early.
func (p *userPatches) check(raw map[string]any, di *lsv1alpha1.DeployItem, who string) error {
	if p.recorded.IsEmpty() {
		return nil
	}
	if _, err := applyPatches(raw, di, p.listUnstored()); err != nil {
		p.drop()
		return fmt.Errorf("the patch of %s: %w", who, err)
	}
	return nil
}

// applyPatches applies the patches to a copy of di and returns the copy. The parameter `raw` is the body that the API
// server has stored, or nil. Functions in the patches receive this body with the changes of di. If raw is nil, the
// functions receive only di. Errors are of type *patchError.
func applyPatches(raw map[string]any, di *lsv1alpha1.DeployItem, patches []*patch.Patch) (*lsv1alpha1.DeployItem, error) {
	before := di.DeepCopy()
	before.SetGroupVersionKind(itemKind)
	var err error
	if before, err = applyPatch(nil, before, &patch.Patch{}); err != nil { // an empty patch converts the item to the form that other patches return
		return nil, &patchError{err: err}
	}
	after := before
	for _, p := range patches {
		if after, err = applyPatch(raw, after, p); err != nil {
			return nil, &patchError{err: err}
		}
	}
	if err := checkPatched(before, after); err != nil {
		return nil, &patchError{err: err}
	}
	guard.ResetProtected(&before.Status, &after.Status)
	after.TypeMeta = di.TypeMeta
	di.Spec.DeepCopyInto(&after.Spec)
	return after, nil
}

// applyPatch applies one patch to a copy of di.
func applyPatch(raw map[string]any, di *lsv1alpha1.DeployItem, p *patch.Patch) (*lsv1alpha1.DeployItem, error) {
	if raw != nil && p.NumFuncs() > 0 {
		return applyPatchToRaw(raw, di, p)
	}
	out, err := p.ApplyToCopy(di)
	if err != nil {
		return nil, err
	}
	return out.(*lsv1alpha1.DeployItem), nil //nolint:forcetypeassert // Preview keeps the type
}

// checkPatched returns an error if the patches change a field that belongs to the contract or to the API server. It
// also returns an error for changes of the metadata that the API server would refuse, because that refusal would come
// after the status has been stored.
func checkPatched(before, after *lsv1alpha1.DeployItem) error {
	if _, err := itempatch.Diff(before, after); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(getServerMetadata(before), getServerMetadata(after)) {
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

// getServerMetadata returns the metadata that only the API server writes.
func getServerMetadata(di *lsv1alpha1.DeployItem) metav1.ObjectMeta {
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
	if !slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, isSameOwner) {
		faults = append(faults, apivalidation.ValidateOwnerReferences(after.OwnerReferences, path.Child("ownerReferences"))...)
	}
	if len(faults) == 0 {
		return nil
	}
	return &patch.FieldError{Path: faults[0].Field, Reason: faults[0].Detail} // this error does not contain the refused value
}

func isSameOwner(a, b metav1.OwnerReference) bool { return a.String() == b.String() }

// patchError is the error for user patches that cannot be applied.
type patchError struct{ err error }

func (e *patchError) Error() string { return e.err.Error() }
func (e *patchError) Unwrap() error { return e.err }

// IsPatchError reports whether err is the error of user patches that cannot be applied.
func IsPatchError(err error) bool {
	_, ok := errors.AsType[*patchError](err)
	return ok
}

// ToStatusError converts a *patch.FieldError to an error for the status of an item. A *patch.FieldError names a field
// that the patch must not change. ToStatusError returns all other errors unchanged, such as an error that a function in
// a patch returned.
func ToStatusError(err error) error {
	if _, isField := errors.AsType[*patch.FieldError](err); !isField {
		return err
	}
	return lserrors.NewError("CheckDeployItem", "PatchRefused", err.Error(), lsv1alpha1.ErrorInternalProblem)
}

// isEqualJSON reports whether two raw values are equal as JSON.
func isEqualJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, right := any(nil), any(nil)
	return json.Unmarshal(a.Raw, &left) == nil && json.Unmarshal(b.Raw, &right) == nil && equality.Semantic.DeepEqual(left, right)
}
