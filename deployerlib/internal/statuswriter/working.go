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

	"github.com/deployerkit/deployerkit/deployerlib/internal/guard"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/patch"
)

// EnsureCopy makes the working copy, unless there is one, and returns it.
func (s *Session) EnsureCopy() *lsv1alpha1.DeployItem {
	if s.working == s.read {
		s.working = s.read.DeepCopy()
	}
	return s.working
}

// Snapshot remembers what user code must not change from now on.
func (s *Session) Snapshot() { s.protected = s.working.Status.DeepCopy() }

// UserCopy returns the working copy for user code and a context with the patch that takes notes.
func (s *Session) UserCopy(ctx context.Context) (context.Context, *lsv1alpha1.DeployItem) {
	s.EnsureCopy()
	if s.protected == nil {
		s.Snapshot()
	}
	return patch.NewContext(ctx, &s.patches.noted), s.working
}

// Restore undoes what user code must not change on the working copy. A changed spec is an error that
// names the path, because it would start the item anew. So is a patch that cannot be applied.
func (s *Session) Restore(log logr.Logger, who string) error {
	guard.Protect(s.protected, &s.working.Status)
	if !equality.Semantic.DeepEqual(s.working.ObjectMeta, s.stored.ObjectMeta) {
		log.V(1).Info("metadata changed in memory is dropped", "by", who)
		s.stored.ObjectMeta.DeepCopyInto(&s.working.ObjectMeta)
	}
	// The first comparison knows bytes; the second takes a configuration byte by byte, which is milliseconds.
	if reflect.DeepEqual(s.working.Spec, s.read.Spec) || equality.Semantic.DeepEqual(s.working.Spec, s.read.Spec) {
		return s.checkPatches(log, who)
	}
	path := specPath(s.read, s.working)
	s.read.Spec.DeepCopyInto(&s.working.Spec)
	return lserrors.NewError("CheckDeployItem", "SpecChanged", fmt.Sprintf("%s changed %s, which no deployer may do", who, path),
		lsv1alpha1.ErrorInternalProblem)
}

// checkPatches drops user patches that cannot be applied and returns why.
func (s *Session) checkPatches(log logr.Logger, who string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.patches.check(s.working, who)
	if err == nil {
		return nil
	}
	log.Info("a patch is dropped", "error", err.Error())
	return RefusedPatch(err)
}

// specPath names where two specs differ.
func specPath(stored, changed *lsv1alpha1.DeployItem) string {
	probe := stored.DeepCopy()
	changed.Spec.DeepCopyInto(&probe.Spec)
	_, err := itempatch.Diff(stored, probe)
	if field, ok := errors.AsType[*patch.FieldError](err); ok {
		return field.Path
	}
	return "spec"
}

// Changed reports whether there is a working copy or a patch, so that there may be something to write.
func (s *Session) Changed() bool { return s.working != s.read || s.patches.pending() }

// DropUserChanges drops what user code put into the status and noted in patches.
func (s *Session) DropUserChanges() {
	s.patches.drop()
	if s.working != s.read {
		s.stored.Status.DeepCopyInto(&s.working.Status)
	}
}

// setStored makes an answer the stored version. The working copy takes over its metadata.
func (s *Session) setStored(obj *lsv1alpha1.DeployItem) {
	obj.ManagedFields = nil
	s.state.Wrote(obj)
	s.stored = obj
	if s.working != s.read {
		obj.ObjectMeta.DeepCopyInto(&s.working.ObjectMeta)
	}
}

// takeOverPatches takes over into the working copy what the user patches made of the stored status.
// Phase and error are what the deployer set in memory, and a provider status that is the same stays
// the same object.
func (s *Session) takeOverPatches() {
	mine := s.working.Status
	s.stored.Status.DeepCopyInto(&s.working.Status)
	s.working.Status.Phase, s.working.Status.LastError = mine.Phase, mine.LastError
	if sameJSON(mine.ProviderStatus, s.working.Status.ProviderStatus) {
		s.working.Status.ProviderStatus = mine.ProviderStatus
	}
}
