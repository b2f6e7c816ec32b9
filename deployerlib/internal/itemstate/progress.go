// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Progress is the progress of an item, for metrics.
type Progress string

// The values of Progress.
const (
	// ProgressUnknown means that the item has had no run, or that another deployer is responsible for it.
	ProgressUnknown Progress = ""
	// ProgressUnfinished means that a run of the item is in progress.
	ProgressUnfinished Progress = "unfinished"
	// ProgressSucceeded means that the last run of the item succeeded.
	ProgressSucceeded Progress = "succeeded"
	// ProgressFailed means that the last run of the item failed.
	ProgressFailed Progress = "failed"
)

// GetProgress returns the progress of an item of which no run is in progress.
func GetProgress(phase lsv1alpha1.DeployItemPhase) Progress {
	switch phase {
	case lsv1alpha1.DeployItemPhases.Succeeded:
		return ProgressSucceeded
	case lsv1alpha1.DeployItemPhases.Failed, lsv1alpha1.DeployItemPhases.DeleteFailed:
		return ProgressFailed
	}
	return ProgressUnknown
}

// MarkUnfinished records that a run of the item is in progress, and when this run was handed out.
func (i *Item) MarkUnfinished(handedOut time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress, i.handedOut = ProgressUnfinished, handedOut
}

// RecordProgress records the progress of an item of which no run is in progress.
func (i *Item) RecordProgress(p Progress) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress, i.handedOut = p, time.Time{}
}

// Summary is the number of items by progress, and the time at which the oldest run in progress was handed out. The time
// is zero if no run is in progress.
type Summary struct {
	Items     map[Progress]int
	HandedOut time.Time
}

// Summarize returns a summary of all items.
func (t *Tracker) Summarize() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Items: map[Progress]int{}}
	for _, item := range t.items {
		item.mu.Lock()
		s.Items[item.progress]++
		if at := item.handedOut; !at.IsZero() && (s.HandedOut.IsZero() || at.Before(s.HandedOut)) {
			s.HandedOut = at
		}
		item.mu.Unlock()
	}
	return s
}
