// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownRules implements the rules of a revision that does not exist. No run starts under it, and
// [RevertForbiddenChanges] allows no write.
type unknownRules Revision

func (u unknownRules) revision() Revision { return Revision(u) }

func (unknownRules) isSelectedBy(*lsv1alpha1.DeployItem) bool { return false }
func (unknownRules) supports(*lsv1alpha1.DeployItem) bool     { return true }

func (u unknownRules) evaluate(_ view, d *Decision) {
	*d = Decision{Revision: d.Revision, Reason: reasonUnknownRevision}
}

func (unknownRules) isInProgress(view, Decision) bool { return false }

func (unknownRules) isSameRun(_, _ *lsv1alpha1.DeployItemStatus, _ Decision) bool { return false }

func (unknownRules) listPhases() revisionPhases                              { return revisionPhases{} }
func (unknownRules) requestTime(*lsv1alpha1.DeployItem) *metav1.Time         { return nil }
func (unknownRules) runStart(*lsv1alpha1.DeployItem) *metav1.Time            { return nil }
func (unknownRules) start(*lsv1alpha1.DeployItemStatus, Decision, StartInfo) {}
func (unknownRules) setFinished(*lsv1alpha1.DeployItemStatus, time.Time)     {}
func (unknownRules) recordHistory(*lsv1alpha1.DeployItemStatus)              {}

func (unknownRules) mask(before, after *lsv1alpha1.DeployItemStatus) { before.DeepCopyInto(after) }

func (unknownRules) setHookError(*lsv1alpha1.DeployItemStatus, *lsv1alpha1.Error, time.Time) {}
func (unknownRules) removeHookError(*lsv1alpha1.DeployItemStatus)                            {}
func (unknownRules) hasHookError(*lsv1alpha1.DeployItemStatus) bool                          { return false }

func (unknownRules) isHookErrorRecorded(*lsv1alpha1.DeployItemStatus, *lsv1alpha1.Error) bool {
	return false
}
