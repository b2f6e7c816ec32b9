// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/internal/decide"
	"github.com/deployerkit/deployerkit/apply/internal/fields"
	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// Action describes how a call of Apply would change an object.
type Action string

// These constants are the actions in a Plan.
const (
	ActionCreate Action = "create"
	ActionChange Action = "change"
	ActionDelete Action = "delete"
	// ActionRecreate means that the object is deleted and created again, for example because of StrategyRecreate.
	ActionRecreate Action = "recreate"
)

// Plan describes the changes that a call of Apply would make.
type Plan struct {
	Changes []Change
	// Unchanged is the number of objects that already match their manifests.
	Unchanged int
	// Moves lists the clusters that the item no longer uses, or will no longer use after the next deployment. The
	// objects of the item in these clusters are deleted or released after the deployment.
	Moves []Move
}

// CountChanges returns the number of objects that would be created, changed, deleted or released.
func (p Plan) CountChanges() int {
	count := len(p.Changes)
	for _, move := range p.Moves {
		count += len(move.Objects) + move.Released
	}
	return count
}

// Move describes what happens to the objects in one cluster because the item no longer uses this cluster.
type Move struct {
	From ClusterID
	// Objects lists the objects that are deleted.
	Objects []Ref
	// Released is the number of objects that stay in the cluster and no longer belong to the item.
	Released int
}

// getVerb describes the move as text for users.
func (m Move) getVerb() string {
	if m.From.Unverified {
		return "possibly leave"
	}
	return "leave"
}

// listMoves returns one Move for each cluster in inv.Former. It decides by the inventory alone.
func listMoves(inv Inventory) []Move {
	var out []Move
	for _, former := range inv.Former {
		if former.Cluster == nil {
			continue
		}
		move := Move{From: *former.Cluster}
		for _, entry := range former.Entries {
			if isReleased(entry) {
				move.Released++
				continue
			}
			move.Objects = append(move.Objects, entry.Ref())
		}
		out = append(out, move)
	}
	return out
}

// Change describes the planned operation on one object.
type Change struct {
	Action Action
	Ref    Ref
	// Fields lists the fields that differ. Values of Secrets are masked. Fields is empty for ActionRecreate if the API
	// server rejected the change of an immutable field.
	Fields []FieldChange
}

// FieldChange describes a changed field with its values as JSON. Old is empty if the field does not exist yet, and New
// is empty if the field is removed.
type FieldChange struct {
	Path, Old, New string
}

// Plan returns the changes that Apply would make, without making them. It makes the same decisions as Apply, also for
// objects that are not in the inventory. It sends the writes to the API server as dry runs, which require the same
// permissions. The error describes the objects that failed, and the plan contains all other objects.
func (e *Engine) Plan(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Plan, error) {
	r := e.begin(owner, inv)
	objects, err := r.prepare(ctx, desired, false)
	if err != nil {
		return Plan{}, err
	}
	r.rules.DryRun = true
	r.objects.setWanted(objects)
	p := &planner{run: r, plan: Plan{Moves: listMoves(inv)}}
	forEach(ctx, e.options.Concurrency, objects, func(_ int, o *desiredObject) { r.results.recordError(o.ref, p.addObject(ctx, o)) })
	forEach(ctx, e.options.Concurrency, r.listOrphans(), func(_ int, s object.Record) { r.results.recordError(s.Ref(), p.addDeletion(ctx, s)) })
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return compareRefs(a.Ref, b.Ref) })
	for _, w := range r.results.toReport().Waiting {
		r.results.addError(&Error{Ref: w.Ref, Message: w.Message, Class: ClassWait})
	}
	return p.plan, r.results.err(ctx)
}

// planner represents one call of Plan. It makes the same decisions as Apply, but its steps change nothing.
type planner struct {
	run *run

	mu   sync.Mutex
	plan Plan
}

// add adds a change to the plan. If the action is empty, it counts the object as unchanged instead.
func (p *planner) add(ref Ref, action Action, found []fields.Difference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if action == "" {
		p.plan.Unchanged++
		return
	}
	p.plan.Changes = append(p.plan.Changes, Change{Action: action, Ref: ref, Fields: fieldChanges(ref, found, p.run.hide)})
}

func (p *planner) addObject(ctx context.Context, o *desiredObject) error {
	if o.isUntouched() {
		return nil
	}
	if o.unserved != nil {
		return o.unserved
	}
	f := decide.Facts{Record: p.run.objects.get(o.ref), Manifest: o.manifest(p.run.options)}
	f.Finish = cmp.Or(f.Finish, GetFinish(o.Object))
	read := p.run.do(ctx, decide.Step{Facts: f, Request: decide.Request{Effect: decide.EffectRead}})
	absent := absence.ClassifyError(f.ToAbsenceObject(), read.Err)
	switch {
	case absent == absence.MeaningFinished && f.CanBeFinished(p.run.rules):
		p.add(o.ref, "", nil)
		return nil
	case absent.IsProved(), absent == absence.MeaningNotServed && o.kind.fromItem:
		p.add(o.ref, ActionCreate, nil)
		return nil
	case read.Err != nil:
		return read.Err
	}
	f.Live, f.IsCurrent = read.Live, true
	end := p.run.runSteps(ctx, decide.Plan(p.run.rules, f))
	var found []fields.Difference
	if answer := end.Facts.Answer; answer != nil {
		found = fields.Diff(read.Live.Object, answer.Object)
	}
	switch {
	case end.Effect == decide.EffectCreate:
		p.add(o.ref, ActionCreate, nil)
	case end.Effect == decide.EffectDelete:
		p.add(o.ref, ActionRecreate, found)
	case end.Err != nil && !end.Usable:
		return end.Err
	case len(found) > 0:
		p.add(o.ref, ActionChange, found)
	default:
		p.add(o.ref, "", nil)
	}
	return nil
}

// addDeletion plans the deletion of an object that is no longer desired.
func (p *planner) addDeletion(ctx context.Context, s object.Record) error {
	if isReleased(s.Entry) {
		return nil
	}
	end := p.run.runSteps(ctx, decide.Remove(p.run.rules, decide.Facts{Record: s}))
	waits, ok := errors.AsType[*decide.Problem](end.Err)
	if end.Effect == decide.EffectDelete || ok && waits.Kind == decide.ProblemWaiting {
		p.add(s.Ref(), ActionDelete, nil)
		return nil
	}
	return end.Err
}

// String returns the plan as text for users. The text contains one line for each object, each field and each cluster
// that the item leaves.
func (p Plan) String() string {
	out := &strings.Builder{}
	for _, c := range p.Changes {
		fmt.Fprintf(out, "%s %s\n", c.Action, c.Ref)
		for _, f := range c.Fields {
			fmt.Fprintf(out, "  %s: %s -> %s\n", f.Path, cmp.Or(f.Old, absentText), cmp.Or(f.New, absentText))
		}
	}
	for _, move := range p.Moves {
		fmt.Fprintf(out, "%s %s\n", move.getVerb(), move.From)
		for _, ref := range move.Objects {
			fmt.Fprintf(out, "  %s %s\n", ActionDelete, ref)
		}
		if move.Released > 0 {
			fmt.Fprintf(out, "  release %d objects\n", move.Released)
		}
	}
	fmt.Fprintf(out, "%d to do, %d unchanged\n", p.CountChanges(), p.Unchanged)
	return out.String()
}

// absentText is the text for a value that does not exist.
const absentText = "(absent)"

// maxValueLength limits the length of one value in the plan.
const maxValueLength = 200

// fieldChanges describes the differences between the desired and the live object as text for users.
func fieldChanges(ref Ref, found []fields.Difference, hide *redact.Redactor) []FieldChange {
	var out []FieldChange
	for _, one := range found {
		masked := isSecret(ref) && (strings.HasPrefix(one.Path, ".data") || strings.HasPrefix(one.Path, ".metadata.annotations"))
		out = append(out, FieldChange{Path: one.Path, Old: formatValue(one.Old, masked, hide), New: formatValue(one.New, masked, hide)})
	}
	return out
}

// formatValue formats a value. If masked is true, the value is hidden. The annotations of a Secret are masked like its
// data, because kubectl stores a copy of the data in an annotation.
func formatValue(value any, masked bool, hide *redact.Redactor) string {
	if value == nil {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil || masked {
		return redact.Mask
	}
	text := cleanText(hide, string(data))
	if runes := []rune(text); len(runes) > maxValueLength {
		text = string(runes[:maxValueLength]) + "…"
	}
	return text
}
