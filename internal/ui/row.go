// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// These constants are the kinds of the rows.
const (
	kindInstallation = "Installation"
	kindExecution    = "Execution"
	kindDeployItem   = "DeployItem"
)

// These constants are the states of a row, by which the page groups and colors the rows.
const (
	stateFailed    = "failed"    // the last run failed
	stateRunning   = "running"   // a run is in progress
	stateWaiting   = "waiting"   // a run is due, but has not started
	stateSucceeded = "succeeded" // the last run succeeded, and nothing is due
	stateIdle      = "idle"      // no run has been requested yet
)

// These constants limit the length of texts of a row, in bytes.
const (
	maxRowName    = 256
	maxRowMessage = 256
)

// row describes one object of the tree. It contains everything that the page needs to list the object, and no
// configuration.
type row struct {
	// ID is "KIND/NAMESPACE/NAME". Parent is the ID of the object to which this object belongs; it is empty for a root.
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Label is the name of an item in its blueprint, if it differs from the name of the object.
	Label string `json:"label,omitempty"`
	// Type is the type of a deploy item.
	Type    string `json:"type,omitempty"`
	Phase   string `json:"phase,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Deleted is true if the deletion of the object was requested.
	Deleted bool `json:"deleted,omitempty"`
	// Changed is when the object last reached its state, in milliseconds since 1970.
	Changed int64 `json:"changed"`
	// Version identifies the version of the object. The page reads the details of the object again if it changes.
	Version string `json:"version"`
}

// formatID returns the ID of an object.
func formatID(kind string, key types.NamespacedName) string {
	return kind + "/" + contract.OneLine(key.Namespace, maxRowName) + "/" + contract.OneLine(key.Name, maxRowName)
}

// newRow returns a row with the fields that all kinds have in common.
func newRow(kind string, obj metav1.Object) row {
	return row{
		ID:      formatID(kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}),
		Deleted: obj.GetDeletionTimestamp() != nil, Version: obj.GetResourceVersion(),
	}
}

// setStatus sets the phase, and the state that follows from it alone.
func (r *row) setStatus(phase string, err *lsv1alpha1.Error) {
	r.Phase = contract.OneLine(phase, maxRowName)
	switch phase {
	case lsv1alpha1.PhaseStringFailed, lsv1alpha1.PhaseStringDeleteFailed:
		r.State = stateFailed
	case lsv1alpha1.PhaseStringSucceeded:
		r.State = stateSucceeded
	case "":
		r.State = stateIdle
	default:
		r.State = stateRunning
	}
	if err != nil {
		r.Message = contract.OneLine(err.Message, maxRowMessage)
	}
}

// setChanged sets Changed to the latest of the given times.
func (r *row) setChanged(times ...*metav1.Time) {
	var last time.Time
	for _, t := range times {
		if t != nil && t.After(last) {
			last = t.Time
		}
	}
	r.Changed = last.UnixMilli()
}

func newInstallationRow(in *lsv1alpha1.Installation) row {
	r := newRow(kindInstallation, in)
	r.setStatus(string(in.Status.InstallationPhase), in.Status.LastError)
	if parent := in.Labels[lsv1alpha1.EncompassedByLabel]; parent != "" {
		r.Parent = formatID(kindInstallation, types.NamespacedName{Namespace: in.Namespace, Name: parent})
	}
	r.setChanged(append(listTimes(in.Status.TransitionTimes), in.Status.PhaseTransitionTime, &in.CreationTimestamp, in.DeletionTimestamp)...)
	return r
}

func newExecutionRow(exec *lsv1alpha1.Execution) row {
	r := newRow(kindExecution, exec)
	r.setStatus(string(exec.Status.ExecutionPhase), exec.Status.LastError)
	for _, owner := range exec.OwnerReferences {
		if owner.Kind == kindInstallation {
			r.Parent = formatID(kindInstallation, types.NamespacedName{Namespace: exec.Namespace, Name: owner.Name})
		}
	}
	r.setChanged(append(listTimes(exec.Status.TransitionTimes), exec.Status.PhaseTransitionTime, &exec.CreationTimestamp, exec.DeletionTimestamp)...)
	return r
}

func newItemRow(di *lsv1alpha1.DeployItem, now time.Time) row {
	r := newRow(kindDeployItem, di)
	r.setStatus(string(di.Status.Phase), di.Status.LastError)
	r.Type = contract.OneLine(string(di.Spec.Type), maxRowName)
	if label := di.Labels[lsv1alpha1.ExecutionManagedNameLabel]; label != di.Name {
		r.Label = contract.OneLine(label, maxRowName)
	}
	if parent := di.Labels[lsv1alpha1.ExecutionManagedByLabel]; parent != "" {
		r.Parent = formatID(kindExecution, types.NamespacedName{Namespace: di.Namespace, Name: parent})
	}
	d := contract.Evaluate(di, contract.Options{Now: now})
	r.Reason = string(d.Reason)
	if d.Due && d.New && r.State != stateRunning {
		r.State = stateWaiting
	}
	if c := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); r.Message == "" && c != nil && c.Status == lsv1alpha1.ConditionTrue {
		r.Message = contract.OneLine(c.Message, maxRowMessage)
	}
	times := listTimes(di.Status.TransitionTimes)
	if di.Status.LastError != nil {
		times = append(times, &di.Status.LastError.LastTransitionTime)
	}
	r.setChanged(append(times, di.Status.LastReconcileTime, di.Status.JobIDGenerationTime, &di.CreationTimestamp, di.DeletionTimestamp)...)
	return r
}

// listTimes returns the times of the transitions of the current job.
func listTimes(t *lsv1alpha1.TransitionTimes) []*metav1.Time {
	if t == nil {
		return nil
	}
	return []*metav1.Time{t.TriggerTime, t.InitTime, t.WaitTime, t.FinishedTime}
}
