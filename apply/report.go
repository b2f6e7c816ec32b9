// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"
)

// Report describes what a call did, and what it left for the next one.
type Report struct {
	// Applied, Unchanged and Deleted count objects. Applied objects were written, even if the write changed nothing.
	// Unchanged objects needed no write. Deleted objects are gone. An object that is deleted in order to be created
	// again is first among the waiting ones, and then Applied.
	Applied, Unchanged, Deleted int
	// Waiting lists what is not finished. The caller calls again, at the latest after Report.After.
	Waiting []Waiting
	// Postponed lists objects that others changed and that Options.MayHeal leaves as they are for now. They count as
	// Unchanged.
	Postponed []Ref
	// Owned lists the objects whose ownership key is known, as this call left them, for comparison with a watch.
	// Apply, AfterDeployment and Session.Report fill it in.
	Owned []Owned
	// Left lists objects that no deletion group contains. They stay in the cluster and in the inventory.
	Left []Ref
}

// Waiting is an object that is not finished, with the reason.
type Waiting struct {
	Ref    Ref
	Reason string
}

// String returns the object and the reason for people.
func (w Waiting) String() string { return w.Ref.String() + ": " + w.Reason }

// Done reports whether nothing is left for another call.
func (r Report) Done() bool { return len(r.Waiting) == 0 }

// lookAgain is how long changes usually take of which the engine gets no event.
const lookAgain = 2 * time.Second

// After returns when to call again. It is zero if the report is Done.
func (r Report) After() time.Duration {
	if r.Done() {
		return 0
	}
	return lookAgain
}

// Reason describes in one line what is not finished.
func (r Report) Reason() string {
	switch len(r.Waiting) {
	case 0:
		return ""
	case 1:
		return r.Waiting[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", r.Waiting[0], len(r.Waiting)-1)
}

// sort makes the report independent of the order in which the goroutines ran.
func (r *Report) sort() {
	slices.SortFunc(r.Waiting, func(a, b Waiting) int { return compareRefs(a.Ref, b.Ref) })
	slices.SortFunc(r.Left, compareRefs)
	slices.SortFunc(r.Postponed, compareRefs)
}

// Event describes something notable that happened to an object.
type Event struct {
	Ref Ref
	// Reason is one of the Reason constants.
	Reason string
	// Message is one line without secret values.
	Message string
}

// These are the reasons of events.
const (
	// ReasonAdopted means that the object existed before, and had no owner.
	ReasonAdopted = "Adopted"
	// ReasonTakenOver means that the object belonged to an earlier life of this item, or to Landscaper's own
	// deployer.
	ReasonTakenOver = "TakenOver"
	// ReasonShared means that the object belongs to another item, and now to this one as well.
	ReasonShared = "Shared"
	// ReasonReleased means that the object is kept, because other items own it too, or because it existed before the
	// item.
	ReasonReleased = "Released"
	// ReasonLeftAlone means that the policy forbids touching an object of another owner, or that an object to be
	// deleted has no mark of the item.
	ReasonLeftAlone = "LeftAlone"
)
