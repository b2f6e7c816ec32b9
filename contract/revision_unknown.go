// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknown implements the rules of a revision that does not exist. No run starts under it, and [Mask] allows no write.
type unknown Revision

func (u unknown) revision() Revision { return Revision(u) }

func (unknown) claims(*lsv1alpha1.DeployItem) bool  { return false }
func (unknown) accepts(*lsv1alpha1.DeployItem) bool { return true }

func (u unknown) evaluate(_ view, d *Decision) {
	*d = Decision{Revision: d.Revision, Reason: reasonUnknownRevision}
}

func (unknown) continues(view, Decision) bool { return false }

func (unknown) sameRun(_, _ *lsv1alpha1.DeployItemStatus, _ Decision) bool { return false }

func (unknown) phases() phaseNames                                      { return phaseNames{} }
func (unknown) requested(*lsv1alpha1.DeployItem) *metav1.Time           { return nil }
func (unknown) runStart(*lsv1alpha1.DeployItem) *metav1.Time            { return nil }
func (unknown) start(*lsv1alpha1.DeployItemStatus, Decision, StartInfo) {}
func (unknown) finish(*lsv1alpha1.DeployItemStatus, time.Time)          {}
func (unknown) recordHistory(*lsv1alpha1.DeployItemStatus)              {}

func (unknown) mask(before, after *lsv1alpha1.DeployItemStatus) { before.DeepCopyInto(after) }

func (unknown) hookFailed(*lsv1alpha1.DeployItemStatus, *lsv1alpha1.Error, time.Time) {}
func (unknown) hookRecovered(*lsv1alpha1.DeployItemStatus)                            {}
func (unknown) showsHookFailure(*lsv1alpha1.DeployItemStatus) bool                    { return false }

func (unknown) showsHookError(*lsv1alpha1.DeployItemStatus, *lsv1alpha1.Error) bool { return false }
