// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// rules are checked against every stored version of every item.
var rules = []Check{
	{
		Name: "finished-is-final", Rows: "[C10]", Revision: contract.RevisionJobID,
		Promise: "at every moment: while jobIDFinished equals jobID the phase is final",
		rule: func(_, now item) string {
			s := now.Status
			return formatViolation(s.JobID == "" || s.JobID != s.JobIDFinished || contract.IsFinal(s.Phase), "the job has finished, but the phase is %q", s.Phase)
		},
	},
	{
		Name: "one-write", Rows: "[C10]", Revision: contract.RevisionJobID,
		Promise: "at every moment: a final phase and jobIDFinished appear in one write",
		rule: func(before, now item) string {
			ends := contract.IsFinal(now.Status.Phase) && now.Status.Phase != before.Status.Phase
			return formatViolation(!ends || now.Status.JobID == now.Status.JobIDFinished, "phase %q was written without jobIDFinished", now.Status.Phase)
		},
	},
	{
		Name: "job-ids", Rows: "[C3]", Revision: contract.RevisionJobID,
		Promise: "at every moment: jobIDFinished belongs to the job and is never removed, and the ID of an unfinished job does not change",
		rule: func(before, now item) string {
			b, s := before.Status, now.Status
			return formatViolation(b.JobIDFinished == s.JobIDFinished || s.JobIDFinished == s.JobID, "jobIDFinished is %q, but jobID is %q", s.JobIDFinished, s.JobID) +
				formatViolation(b.JobID == s.JobID || b.JobID == b.JobIDFinished, "jobID changed to %q before the previous job had finished", s.JobID)
		},
	},
	{
		Name: "ends-once", Rows: "[C10]", Revision: contract.RevisionJobID,
		Promise: "at every moment: a job that has ended does not change",
		rule: func(before, now item) string {
			b, s := before.Status, now.Status
			ended := b.JobID != "" && b.JobID == b.JobIDFinished && b.JobID == s.JobID
			return formatViolation(!ended || b.Phase == s.Phase && formatFinishTime(b) == formatFinishTime(s),
				"the job ended with phase %q at %s, and then a second time with phase %q at %s", b.Phase, formatFinishTime(b), s.Phase, formatFinishTime(s))
		},
	},
	{
		Name: "failed-has-error", Rows: "[C10]", Promise: "at every moment: a failed item has a lastError",
		rule: func(before, now item) string {
			began := now.Status.JobID != before.Status.JobID // another job has been requested, but its run has not begun
			failed := now.Status.Phase == phases.Failed || now.Status.Phase == phases.DeleteFailed
			return formatViolation(!failed || began || now.Status.LastError != nil, "the phase is %q, but lastError is not set", now.Status.Phase)
		},
	},
	{
		Name: "error-shape", Rows: "[C10]", Promise: "at every moment: lastError has operation, reason, message and times",
		rule: func(_, now item) string {
			e := now.Status.LastError
			return formatViolation(e == nil || e.Operation != "" && e.Reason != "" && e.Message != "" && !e.LastTransitionTime.IsZero() && !e.LastUpdateTime.IsZero(),
				"lastError is %+v", e)
		},
	},
	{
		Name: "observed-generation", Rows: "[C7]", Promise: "at every moment: observedGeneration is not greater than the generation and never decreases",
		rule: func(before, now item) string {
			b, s := before.Status.ObservedGeneration, now.Status.ObservedGeneration
			return formatViolation(s <= now.Generation && s >= b, "observedGeneration changed from %d to %d, and the generation is %d", b, s, now.Generation)
		},
	},
	{
		Name: "known-phases", Rows: "[C9]", Promise: "at every moment: the phase is one that Landscaper supports in this revision",
		rule: func(_, now item) string {
			known := []lsv1alpha1.DeployItemPhase{"", phases.Init, phases.Progressing, phases.Deleting, phases.Succeeded, phases.Failed}
			if now.Status.JobID != "" {
				known = append(known, phases.InitDelete, phases.DeleteFailed)
			}
			return formatViolation(slices.Contains(known, now.Status.Phase), "this revision has no phase %q", now.Status.Phase)
		},
	},
	{
		Name: "deprecated", Rows: "[C9]", Revision: contract.RevisionJobID, Promise: "at every moment: the deprecated field deployItemPhase is empty",
		rule: func(_, now item) string {
			return formatViolation(now.Status.DeployerPhase == nil, "deployItemPhase is set")
		},
	},
	{
		Name: "spec-untouched", Rows: "[C7, L25]", Promise: "at every moment: only Landscaper writes the spec",
		rule: func(_, now item) string {
			for _, entry := range now.ManagedFields {
				if entry.Manager != fieldManager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
					return fmt.Sprintf("field manager %q wrote the spec", entry.Manager)
				}
			}
			return ""
		},
	},
	{
		Name: "finalizer", Rows: "[C13, Lx6]", Promise: "at every moment: an item in progress or deployed has Landscaper's finalizer until it is deleted",
		rule: func(_, now item) string {
			fresh := now.Status.Phase == "" || now.Status.Phase == phases.Init
			return formatViolation(fresh || now.DeletionTimestamp != nil || contract.HasLandscaperFinalizer(now), "the phase is %q, but the item lacks the finalizer", now.Status.Phase)
		},
	},
	{
		Name: "says-who", Rows: "[C5, C11]", Promise: "at every moment: an item with a phase shows its deployer and when its run began",
		rule: func(_, now item) string {
			s := now.Status
			return formatViolation(s.Phase == "" || !s.LastReconcileTime.IsZero() && s.Deployer.Name != "", "the phase is %q, lastReconcileTime is %v, and the name of the deployer is %q", s.Phase, s.LastReconcileTime, s.Deployer.Name)
		},
	},
}

// formatFinishTime returns the time at which a job ended, as text.
func formatFinishTime(s lsv1alpha1.DeployItemStatus) string {
	if s.TransitionTimes == nil || s.TransitionTimes.FinishedTime == nil {
		return "no time"
	}
	return s.TransitionTimes.FinishedTime.UTC().Format(time.RFC3339)
}

// formatViolation returns the formatted text, or "" if ok is true.
func formatViolation(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...) + " "
}

// ruleResults collects the violations of rules in all histories of a revision.
type ruleResults struct {
	mu              sync.Mutex
	items, versions int
	faults          map[string][]string // the key is the name of the rule
}

// listRules returns the rules of a revision.
func listRules(revision contract.Revision) []Check {
	return slices.DeleteFunc(slices.Clone(rules), func(c Check) bool { return c.Revision != "" && c.Revision != revision })
}

// add checks a history against the rules.
func (j *ruleResults) add(h *History) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range h.ListNames() {
		versions := h.GetVersions(name)
		j.items, j.versions = j.items+1, j.versions+len(versions)
		for _, c := range listRules(h.revision) {
			if fault := findViolation(c, versions); fault != "" {
				j.faults[c.Name] = append(j.faults[c.Name], fault)
			}
		}
	}
}

// findViolation returns the first violation of a rule in the versions of an item, or "".
func findViolation(c Check, versions []item) string {
	before := versions[0]
	for _, now := range versions {
		if fault := strings.TrimSpace(c.rule(before, now)); fault != "" {
			return fmt.Sprintf("%s/%s@%s: %s", now.Namespace, now.Name, now.ResourceVersion, fault)
		}
		before = now
	}
	return ""
}

// shownFaults is the maximum number of violations of a rule that are shown.
const shownFaults = 3

// getResult returns the result of a rule so far.
func (j *ruleResults) getResult(c Check) (failed, seen string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen = fmt.Sprintf("%d versions of %d items", j.versions, j.items)
	faults := j.faults[c.Name]
	if len(faults) > shownFaults {
		faults = append(slices.Clone(faults[:shownFaults]), fmt.Sprintf("and %d more items", len(faults)-shownFaults))
	}
	return strings.Join(faults, "\n"), seen
}
