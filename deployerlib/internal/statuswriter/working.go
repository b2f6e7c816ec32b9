// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// EnsureCopy returns the working copy and creates it if necessary.
func (s *Session) EnsureCopy() *lsv1alpha1.DeployItem {
	if s.working == s.read {
		s.working = s.read.DeepCopy()
	}
	return s.working
}

// SaveStatus stores the current status. ResetProtected uses this status to reset the fields that user code must not
// change.
func (s *Session) SaveStatus() { s.protected = s.working.Status.DeepCopy() }

// GetUserCopy returns the working copy for user code, and a context from which patch.FromContext returns the patch of
// the session.
func (s *Session) GetUserCopy(ctx context.Context) (context.Context, *lsv1alpha1.DeployItem) {
	s.EnsureCopy()
	if s.protected == nil {
		s.SaveStatus()
	}
	return patch.NewContext(ctx, &s.patches.recorded), s.working
}

// ResetProtected reverts the changes to the working copy that user code must not make. It returns an error with the
// path of the field if the spec was changed, because a stored change of the spec would lead to another run. It also
// returns an error if a patch cannot be applied. The parameter `who` is the name of the user code in logs and errors.
func (s *Session) ResetProtected(ctx context.Context, log logr.Logger, who string) error {
	guard.ResetProtected(s.protected, &s.working.Status)
	contract.SetMissingTimes(s.stored.Status.Conditions, s.working.Status.Conditions, s.writer.options.Clock.Now())
	if !equality.Semantic.DeepEqual(s.working.ObjectMeta, s.stored.ObjectMeta) {
		log.V(1).Info("discarding changes of the metadata in memory", "by", who)
		s.stored.ObjectMeta.DeepCopyInto(&s.working.ObjectMeta)
	}
	// DeepEqual is fast. Semantic.DeepEqual compares a configuration byte by byte, which takes milliseconds.
	if reflect.DeepEqual(s.working.Spec, s.read.Spec) || equality.Semantic.DeepEqual(s.working.Spec, s.read.Spec) {
		return s.checkPatches(ctx, log, who)
	}
	path := findSpecDifference(s.read, s.working)
	s.read.Spec.DeepCopyInto(&s.working.Spec)
	return lserrors.NewError("CheckDeployItem", "SpecChanged", fmt.Sprintf("%s changed %s, which a deployer must not do", who, path),
		lsv1alpha1.ErrorInternalProblem)
}

// checkPatches drops user patches that cannot be applied and returns the reason.
func (s *Session) checkPatches(ctx context.Context, log logr.Logger, who string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readRaw(ctx, s.patches.listUnstored()); err != nil {
		log.V(1).Info("the item cannot be read now, so the patch is checked later, when it is written", "error", err.Error())
		return nil
	}
	err := s.patches.check(s.raw, s.working, who)
	if err == nil {
		return nil
	}
	log.Info("the patch is invalid and is discarded", "error", err.Error())
	return ToStatusError(err)
}

// findSpecDifference returns the path at which two specs differ.
func findSpecDifference(stored, changed *lsv1alpha1.DeployItem) string {
	probe := stored.DeepCopy()
	changed.Spec.DeepCopyInto(&probe.Spec)
	_, err := itempatch.Diff(stored, probe)
	if field, ok := errors.AsType[*patch.FieldError](err); ok {
		return field.Path
	}
	return "spec"
}

// HasChanges reports whether there is a working copy or a patch, so that a write may be needed.
func (s *Session) HasChanges() bool { return s.working != s.read || s.patches.hasUnstored() }

// DropUserChanges drops the changes of user code in the status and in patches.
func (s *Session) DropUserChanges() {
	s.patches.drop()
	if s.working != s.read {
		s.stored.Status.DeepCopyInto(&s.working.Status)
	}
}

// setStored records the item in a response of the API server as the stored item. It also copies the metadata of this
// item to the working copy.
func (s *Session) setStored(obj *lsv1alpha1.DeployItem) {
	obj.ManagedFields = nil
	s.state.RecordWrite(obj)
	s.stored = obj
	if s.working != s.read {
		obj.ObjectMeta.DeepCopyInto(&s.working.ObjectMeta)
	}
}

// copyPatched copies the stored status, which includes the effect of the user patches, to the working copy. It
// keeps the phase and the error that the deployer set in memory. It also keeps the provider status of the working copy
// if the stored provider status is equal.
func copyPatched(stored, working *lsv1alpha1.DeployItem) {
	mine := working.Status
	stored.Status.DeepCopyInto(&working.Status)
	working.Status.Phase, working.Status.LastError = mine.Phase, mine.LastError
	if isEqualJSON(mine.ProviderStatus, working.Status.ProviderStatus) {
		working.Status.ProviderStatus = mine.ProviderStatus
	}
}
