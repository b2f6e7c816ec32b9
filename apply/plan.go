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
	"github.com/deployerkit/deployerkit/apply/internal/fields"
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
	// ActionRecreate means that the object is deleted and created again, for example because of the strategy Recreate.
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

// ToDo returns the number of objects that would be created, changed, deleted or released.
func (p Plan) ToDo() int {
	count := len(p.Changes)
	for _, move := range p.Moves {
		count += len(move.Objects) + move.Released
	}
	return count
}

// Move describes what happens to the objects in one cluster because the item no longer uses this cluster.
type Move struct {
	From Cluster
	// Objects lists the objects that are deleted.
	Objects []Ref
	// Released is the number of objects that stay in the cluster and no longer belong to the item.
	Released int
}

// verb describes the move as text for users.
func (m Move) verb() string {
	if m.From.Unverified {
		return "possibly leave"
	}
	return "leave"
}

// movesOf returns one Move for each cluster in inv.Former. It decides by the inventory alone.
func movesOf(inv Inventory) []Move {
	var out []Move
	for _, former := range inv.Former {
		if former.Cluster == nil {
			continue
		}
		move := Move{From: *former.Cluster}
		for _, entry := range former.Entries {
			if entry.isReleased() {
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
	r.rules.dry = true
	r.objects.want(objects)
	p := &planner{run: r, plan: Plan{Moves: movesOf(inv)}}
	forEach(ctx, e.options.Concurrency, objects, func(_ int, o *object) { r.results.note(o.ref, p.object(ctx, o)) })
	forEach(ctx, e.options.Concurrency, r.orphans(), func(_ int, s entryState) { r.results.note(s.Ref(), p.orphan(ctx, s)) })
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return compareRefs(a.Ref, b.Ref) })
	for _, w := range r.results.reported().Waiting {
		r.results.fail(&Error{Ref: w.Ref, Reason: w.Reason, Class: Wait})
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

func (p *planner) object(ctx context.Context, o *object) error {
	if o.untouched() {
		return nil
	}
	if o.unserved != nil {
		return o.unserved
	}
	k := known{entryState: p.run.objects.at(o.ref), want: o}
	k.Finish = cmp.Or(k.Finish, FinishOf(o.Object))
	live, err := p.run.do(ctx, step{known: k, effect: effectRead})
	absent := absence.Of(k.asAbsent(), err)
	switch {
	case absent == absence.Done && k.mayBeFinished(p.run.rules):
		p.add(o.ref, "", nil)
		return nil
	case absent.IsProved(), absent == absence.NotServed && o.kind.fromItem:
		p.add(o.ref, ActionCreate, nil)
		return nil
	case err != nil:
		return err
	}
	k.live, k.isCurrent = live, true
	end := p.run.pursue(ctx, decideUnseen(p.run.rules, k))
	var found []fields.Difference
	if answer := end.known.answer; answer != nil {
		found = fields.Diff(live.Object, answer.Object)
	}
	switch {
	case end.effect == effectCreate:
		p.add(o.ref, ActionCreate, nil)
	case end.effect == effectDelete:
		p.add(o.ref, ActionRecreate, found)
	case end.err != nil && !end.usable:
		return end.err
	case len(found) > 0:
		p.add(o.ref, ActionChange, found)
	default:
		p.add(o.ref, "", nil)
	}
	return nil
}

// orphan plans the deletion of an object that is no longer desired.
func (p *planner) orphan(ctx context.Context, s entryState) error {
	if s.isReleased() {
		return nil
	}
	end := p.run.pursue(ctx, decideRemove(p.run.rules, known{entryState: s}))
	isWaiting, ok := errors.AsType[*Error](end.err)
	if end.effect == effectDelete || ok && isWaiting.Class == Wait {
		p.add(s.Ref(), ActionDelete, nil)
		return nil
	}
	return end.err
}

// String returns the plan as text for users. The text contains one line for each object, each field and each cluster
// that the item leaves.
func (p Plan) String() string {
	out := &strings.Builder{}
	for _, c := range p.Changes {
		fmt.Fprintf(out, "%s %s\n", c.Action, c.Ref)
		for _, f := range c.Fields {
			fmt.Fprintf(out, "  %s: %s -> %s\n", f.Path, cmp.Or(f.Old, absent), cmp.Or(f.New, absent))
		}
	}
	for _, move := range p.Moves {
		fmt.Fprintf(out, "%s %s\n", move.verb(), move.From)
		for _, ref := range move.Objects {
			fmt.Fprintf(out, "  %s %s\n", ActionDelete, ref)
		}
		if move.Released > 0 {
			fmt.Fprintf(out, "  release %d objects\n", move.Released)
		}
	}
	fmt.Fprintf(out, "%d to do, %d unchanged\n", p.ToDo(), p.Unchanged)
	return out.String()
}

// absent is the text for a value that does not exist.
const absent = "(absent)"

// longestValue limits the length of one value in the plan.
const longestValue = 200

// fieldChanges describes the differences between the desired and the live object as text for users.
func fieldChanges(ref Ref, found []fields.Difference, hide *redact.Redactor) []FieldChange {
	var out []FieldChange
	for _, one := range found {
		masked := ref.isSecret() && (strings.HasPrefix(one.Path, ".data") || strings.HasPrefix(one.Path, ".metadata.annotations"))
		out = append(out, FieldChange{Path: one.Path, Old: show(one.Old, masked, hide), New: show(one.New, masked, hide)})
	}
	return out
}

// show formats a value. If masked is true, the value is hidden. The annotations of a Secret are masked like its data,
// because kubectl stores a copy of the data in an annotation.
func show(value any, masked bool, hide *redact.Redactor) string {
	if value == nil {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil || masked {
		return redact.Mask
	}
	text := clean(hide, string(data))
	if runes := []rune(text); len(runes) > longestValue {
		text = string(runes[:longestValue]) + "…"
	}
	return text
}
