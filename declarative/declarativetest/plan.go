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
	// Create means that the child does not exist and is created.
	Create Action = "create"
	// Change means that a field that the handler wants is missing or has another value.
	Change Action = "change"
	// Recreate means the same as Change, but the child is deleted and created again.
	Recreate Action = "recreate"
	// Delete means that the handler does not return the child any more.
	Delete Action = "delete"
	// Keep means that the child is left as it is. The handler returns only its name, or the child exists and is updated
	// OnDelete, or it is being deleted and is created when it is gone.
	Keep Action = "keep"
	// Missing means that the child does not exist and is not created, because the handler returns only its name.
	Missing Action = "missing"
	// Unchanged means that the child is as the handler wants it.
	Unchanged Action = "unchanged"
)

// Step is one child of a plan.
type Step struct {
	Action Action
	Ref    apply.Ref
	// Fields are the paths of the fields that a Change or Recreate is for, such as ".spec.replicas".
	Fields []string
	// Object is what the handler wants, with the namespace and labels that the library adds. It is nil for Delete.
	Object map[string]any
}

// String formats the step for people, such as "change Deployment.apps shop/web .spec.replicas".
func (s Step) String() string {
	return strings.Join(append([]string{string(s.Action), s.Ref.String()}, s.Fields...), " ")
}

// Plan is what the deployer would do after one call of a handler.
type Plan struct {
	// Children are all children that the handler wants, in its order, followed by those to be deleted.
	Children []Step
	// Status is the handler's status as it is stored, with apiVersion, kind and observedGeneration. It is nil if there
	// is none.
	Status json.RawMessage
	// ResyncAfter and Wait are copied from the handler's response.
	ResyncAfter time.Duration
	Wait        string
	// Observed are the children as they are afterwards, for another call of [Run]. They are the observed children with
	// the wanted fields merged into them.
	Observed []any
}

// With returns the names of the children with an action.
func (p *Plan) With(action Action) []string {
	var out []string
	for _, step := range p.Children {
		if step.Action == action {
			out = append(out, step.Ref.String())
		}
	}
	return out
}

// Steps returns one line for each step, such as "create Pod shop/web", ordered by name. It leaves out children that are
// unchanged or kept, and returns nil if there is nothing to do.
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

// Object returns the wanted object of a child by the name that [Step] gives it, such as "Pod shop/web". It returns nil
// if there is none.
func (p *Plan) Object(name string) map[string]any {
	for _, step := range p.Children {
		if step.Ref.String() == name {
			return step.Object
		}
	}
	return nil
}
