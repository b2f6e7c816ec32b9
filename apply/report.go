// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"
)

// Report tells what a call did, and what it left for the next one.
type Report struct {
	// Applied were written (a write that changed nothing included), Unchanged cost no write, Deleted are gone. What is deleted to be
	// created again is among what is waited for, and then Applied.
	Applied, Unchanged, Deleted int
	// Waiting is what is not finished. The caller calls again, at the latest after Report.After.
	Waiting []Waiting
	// Postponed are objects that others changed and that Options.MayHeal leaves as they are for now. They count as Unchanged.
	Postponed []Ref
	// Owned are the objects whose ownership key is known, as this call left them: what a watch should see. Apply,
	// AfterDeployment and Session.Report fill it in.
	Owned []Owned
	// Left are objects that no deletion group names. They stay in the cluster and in the inventory.
	Left []Ref
}

// Waiting is an object that is not finished, and why.
type Waiting struct {
	Ref    Ref
	Reason string
}

// String is for people.
func (w Waiting) String() string { return w.Ref.String() + ": " + w.Reason }

// Done tells that nothing is left for another call.
func (r Report) Done() bool { return len(r.Waiting) == 0 }

// lookAgain is how long things usually take that have no event for us.
const lookAgain = 2 * time.Second

// After is when to call again; zero when Done.
func (r Report) After() time.Duration {
	if r.Done() {
		return 0
	}
	return lookAgain
}

// Reason tells in one line what is waited for.
func (r Report) Reason() string {
	switch len(r.Waiting) {
	case 0:
		return ""
	case 1:
		return r.Waiting[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", r.Waiting[0], len(r.Waiting)-1)
}

// sort makes the report the same however the goroutines ran.
func (r *Report) sort() {
	slices.SortFunc(r.Waiting, func(a, b Waiting) int { return compareRefs(a.Ref, b.Ref) })
	slices.SortFunc(r.Left, compareRefs)
	slices.SortFunc(r.Postponed, compareRefs)
}

// Event is something that somebody may want to know about an object.
type Event struct {
	Ref Ref
	// Reason is one of the Reason constants.
	Reason string
	// Message is one line without secret values.
	Message string
}

// Reasons of events.
const (
	// ReasonAdopted: the object existed before, and belonged to nobody.
	ReasonAdopted = "Adopted"
	// ReasonTakenOver: the object belonged to an earlier life of this item, or to Landscaper's own deployer.
	ReasonTakenOver = "TakenOver"
	// ReasonShared: the object belongs to another item, and to this one as well now.
	ReasonShared = "Shared"
	// ReasonReleased: the object is kept, because other items own it too, or because it existed before the item.
	ReasonReleased = "Released"
	// ReasonLeftAlone: the policy forbids touching an object of somebody else, or an object that was to be deleted has no mark
	// of the item.
	ReasonLeftAlone = "LeftAlone"
)
