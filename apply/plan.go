// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Action describes what a call of Apply would do with an object.
type Action string

// These are the actions of a Plan.
const (
	ActionCreate Action = "create"
	ActionChange Action = "change"
	ActionDelete Action = "delete"
	// ActionRecreate deletes and creates the object, as the strategy Recreate does when a field differs.
	ActionRecreate Action = "recreate"
)

// Plan describes what a call of Apply would do.
type Plan struct {
	Changes []Change
	// Unchanged is the number of objects that already match their manifests.
	Unchanged int
	// Moves lists the clusters that the item has left or leaves now. After the deployment, its objects there are
	// deleted.
	Moves []Move
}

// Move describes the deletion of an item's objects in a cluster that it leaves.
type Move struct {
	From    Cluster
	Objects []Ref
}

// movesOf returns the moves of an inventory.
func movesOf(inv Inventory) []Move {
	var out []Move
	for _, former := range inv.Former {
		if former.Cluster == nil {
			continue
		}
		move := Move{From: *former.Cluster}
		for _, entry := range former.Entries {
			if policy := entry.policy(); policy != Keep && policy != Ignore {
				move.Objects = append(move.Objects, entry.Ref())
			}
		}
		out = append(out, move)
	}
	return out
}

// Change describes what would be done with one object.
type Change struct {
	Action Action
	Ref    Ref
	// Fields are the fields that differ. Values of Secrets are masked. There are none with ActionRecreate if the API
	// server refused the change of an immutable field.
	Fields []FieldChange
}

// FieldChange is one field of a Change, with its values as JSON. A value is empty if the field does not exist.
type FieldChange struct {
	Path, Old, New string
}

// Plan returns what Apply would do, and writes nothing. It sends changes to the API server as dry runs, which need
// the same rights. Objects that are not in the inventory are judged as Apply would judge them. As with Apply, the
// error contains what cannot be planned; the plan then contains the rest.
func (e *Engine) Plan(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Plan, error) {
	objects, hide, err := e.prepare(ctx, owner, desired)
	if err != nil {
		return Plan{}, err
	}
	r := e.newRun(owner, inv, hide)
	r.dry = true
	p := &planning{run: r, plan: Plan{Moves: movesOf(inv)}}
	wanted, uids := map[Ref]bool{}, map[types.UID]bool{}
	for _, o := range objects {
		s := r.book[o.ref.id()]
		if s == nil {
			s = &slot{}
		}
		wanted[o.ref.id()], uids[s.UID] = true, s.UID != ""
	}
	forEach(ctx, e.options.Concurrency, objects, func(o *object) { r.note(o.ref, p.object(ctx, o)) })
	orphans := slices.DeleteFunc(r.all(), func(s *slot) bool { return wanted[s.Ref().id()] || uids[s.UID] })
	forEach(ctx, e.options.Concurrency, orphans, func(s *slot) { r.note(s.Ref(), p.orphan(ctx, s)) })
	slices.SortFunc(p.plan.Changes, func(a, b Change) int { return compareRefs(a.Ref, b.Ref) })
	for _, w := range r.waits {
		r.errs = append(r.errs, &Error{Ref: w.Ref, Reason: w.Reason, Class: Wait})
	}
	_, _, err = r.result(ctx)
	return p.plan, err
}

// planning is one call of Plan.
type planning struct {
	run *run

	plan Plan
}

func (p *planning) add(c Change) {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	p.plan.Changes = append(p.plan.Changes, c)
}

func (p *planning) object(ctx context.Context, o *object) error {
	if o.untouched() {
		return nil
	}
	live, err := p.run.read(ctx, o.ref)
	switch {
	case live == nil && err == nil, meta.IsNoMatchError(err) && o.kind.fromItem:
		p.add(Change{Action: ActionCreate, Ref: o.ref})
		return nil
	case err != nil:
		return err
	}
	s := p.run.book[o.ref.id()]
	if s == nil {
		s = &slot{}
	}
	ours := live.GetUID() == s.UID || p.run.isOurs(live)
	leave := o.Policy == Immutable || o.Policy == Fallback && !ours
	shared := p.run.isSharedNow(o, live)
	if !leave && !shared {
		err = p.claim(ctx, o, s, live)
	}
	if err != nil {
		return err
	}
	after := live
	if !leave && (o.Strategy != OnDelete || !ours) {
		after, err = p.outcome(ctx, o, s, live)
	}
	recreates := !shared && o.Strategy == Recreate && live.GetUID() == s.UID && p.run.isOwn(live, s) && s.Hash != ""
	return p.compare(o, live, after, recreates, err)
}

// claim returns the reason why the item cannot own an object.
func (p *planning) claim(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) error {
	mine, err := p.run.claimable(ctx, o, s, live)
	if err == nil && !mine && live.GetUID() != s.UID && p.run.refuses(o) {
		return refusal(o.ref, live)
	}
	return err
}

// outcome asks the API server for the result of a write.
func (p *planning) outcome(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if p.run.isSharedNow(o, live) {
		return p.run.sendShared(ctx, o, live)
	}
	switch o.Strategy {
	case Apply, Recreate, OnDelete:
		return p.run.send(ctx, o, live.GetUID(), client.ForceOwnership)
	case Update, Patch, Merge, MergeOverwrite:
	}
	after := o.becomes(s, live)
	if equality.Semantic.DeepEqual(after.Object, live.Object) {
		return live, nil
	}
	return after, p.run.put(ctx, o, live, after)
}

// compare plans the step from one version of an object to the other. If recreates is true, a difference leads to a
// recreation instead of a change.
func (p *planning) compare(o *object, live, after *unstructured.Unstructured, recreates bool, err error) error {
	change := Change{Action: ActionChange, Ref: o.ref}
	switch {
	case recreates && isImmutable(err):
		change.Action = ActionRecreate
		p.add(change)
		return nil
	case err != nil:
		return err
	}
	change.Fields = p.run.fields(o.ref, live, after)
	if len(change.Fields) == 0 {
		p.run.count(&p.plan.Unchanged)
		return nil
	}
	if recreates && differ(live, after) {
		change.Action = ActionRecreate
	}
	p.add(change)
	return nil
}

// orphan plans the deletion of an object that is no longer desired.
func (p *planning) orphan(ctx context.Context, s *slot) error {
	if s.isLetGo() || s.Adopted {
		return nil
	}
	live, err := p.run.read(ctx, s.Ref())
	switch {
	case isGone(err), err == nil && live == nil:
		return nil
	case err != nil:
		return err
	case p.run.isShared(s.Ref()) && len(p.run.others(live)) > 0: // it is only released
	case p.run.isOwn(live, s):
		p.add(Change{Action: ActionDelete, Ref: s.Ref()})
	}
	return nil
}

// String returns the plan for people, with one line per object, per field, and per cluster that the item leaves.
func (p Plan) String() string {
	out := &strings.Builder{}
	for _, c := range p.Changes {
		fmt.Fprintf(out, "%s %s\n", c.Action, c.Ref)
		for _, f := range c.Fields {
			fmt.Fprintf(out, "  %s: %s -> %s\n", f.Path, orAbsent(f.Old), orAbsent(f.New))
		}
	}
	for _, move := range p.Moves {
		fmt.Fprintf(out, "leave the cluster %s of Target %s\n", move.From.UID, move.From.Target)
		for _, ref := range move.Objects {
			fmt.Fprintf(out, "  %s %s\n", ActionDelete, ref)
		}
	}
	fmt.Fprintf(out, "%d to do, %d unchanged\n", len(p.Changes), p.Unchanged)
	return out.String()
}

func orAbsent(value string) string {
	if value == "" {
		return "(absent)"
	}
	return value
}
