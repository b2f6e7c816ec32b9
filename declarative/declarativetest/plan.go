// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/deployerkit/deployerkit/apply"
)

// Action is what the deployer would do with a child.
type Action string

const (
	// Create means: the child does not exist.
	Create Action = "create"
	// Change means: a field that the handler wants is another, or is missing.
	Change Action = "change"
	// Recreate means: as Change, by deleting and creating it.
	Recreate Action = "recreate"
	// Delete means: the handler does not return the child any more.
	Delete Action = "delete"
	// Keep means: nothing, whatever the child is like: it says nothing but its name, or exists and is updated OnDelete, or
	// is being deleted and is created when it is gone.
	Keep Action = "keep"
	// Missing means: nothing either: the child says nothing but its name, so it is not created.
	Missing Action = "missing"
	// Unchanged means: the child is as the handler wants it.
	Unchanged Action = "unchanged"
)

// Step is one child of a plan.
type Step struct {
	Action Action
	Ref    apply.Ref
	// Fields are the paths that a Change or Recreate is for, such as ".spec.replicas".
	Fields []string
	// Object is what the handler wants, completed by the library (namespace, labels). nil for Delete.
	Object map[string]any
}

// String is for people: "change Deployment.apps shop/web .spec.replicas".
func (s Step) String() string {
	return strings.Join(append([]string{string(s.Action), s.Ref.String()}, s.Fields...), " ")
}

// Plan is what the deployer would do after one call of a handler.
type Plan struct {
	// Children are all that the handler wants, in its order, and then those to be deleted.
	Children []Step
	// Status is what becomes of the handler's status, with apiVersion, kind and observedGeneration; nil: none.
	Status json.RawMessage
	// ResyncAfter and Wait are the handler's.
	ResyncAfter time.Duration
	Wait        string
	// Observed are the children as they are afterwards, for another [Run]: what was observed with what was wanted laid over
	// it.
	Observed []any
}

// With picks the names of the children with an action.
func (p *Plan) With(action Action) []string {
	var out []string
	for _, step := range p.Children {
		if step.Action == action {
			out = append(out, step.Ref.String())
		}
	}
	return out
}

// Steps tells in lines what is done, ordered by name: "create Pod shop/web". Children that are unchanged or kept are left
// out; nil: nothing is done.
func (p *Plan) Steps() []string {
	var out []string
	for _, step := range slices.SortedStableFunc(slices.Values(p.Children), func(a, b Step) int {
		return cmp.Compare(a.Ref.String(), b.Ref.String())
	}) {
		if step.Action != Unchanged && step.Action != Keep {
			out = append(out, step.String())
		}
	}
	return out
}

// Object is what the handler wants a child to be, by the name that [Step] gives it: "Pod shop/web". nil: nothing.
func (p *Plan) Object(name string) map[string]any {
	for _, step := range p.Children {
		if step.Ref.String() == name {
			return step.Object
		}
	}
	return nil
}
