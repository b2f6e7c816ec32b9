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

// Action describes what the deployer would do with a child.
type Action string

const (
	// ActionCreate means that the child does not exist and is created.
	ActionCreate Action = "create"
	// ActionChange means that the child differs from the desired object in fields that the update strategy corrects. The
	// child is changed.
	ActionChange Action = "change"
	// ActionRecreate means that the child differs from the desired object in the same way as for ActionChange. The child
	// is deleted and created again.
	ActionRecreate Action = "recreate"
	// ActionDelete means that the handler no longer returns the child, and that the child is deleted.
	ActionDelete Action = "delete"
	// ActionKeep means that the child exists and is not changed. A child is kept if the handler returned only its name, if
	// its update strategy is StrategyOnDelete, or if it is being deleted and will be created again.
	ActionKeep Action = "keep"
	// ActionMissing means that the child does not exist and is not created, because the handler returned only its name.
	ActionMissing Action = "missing"
	// ActionUnchanged means that the child already matches the desired object.
	ActionUnchanged Action = "unchanged"
)

// Step describes the action for one child of a plan.
type Step struct {
	Action Action
	Ref    apply.Ref
	// Fields are the paths of the fields that make ActionChange or ActionRecreate necessary, such as ".spec.replicas" or
	// ".spec.containers[0].image".
	Fields []string
	// Object is the desired object, with the namespace and labels that the library adds. It is nil for ActionDelete.
	Object map[string]any
}

// String formats the step as text, such as "change Deployment.apps shop/web .spec.replicas".
func (s Step) String() string {
	return strings.Join(append([]string{string(s.Action), s.Ref.String()}, s.Fields...), " ")
}

// Plan describes what the deployer would do after one call of a handler.
type Plan struct {
	// Steps contains a step for each desired child, in the order of the response, followed by the children to be
	// deleted.
	Steps []Step
	// Status is the handler's status as it is stored, with apiVersion, kind and observedGeneration. It is nil if there
	// is none.
	Status json.RawMessage
	// ResyncAfter and Wait are copied from the handler's response.
	ResyncAfter time.Duration
	Wait        string
	// Observed are the children as they would be after the deployer has applied everything. Use them for another call
	// of [Run].
	Observed []any
}

// ListNames returns the names of the children whose step has the given action.
func (p *Plan) ListNames(action Action) []string {
	var out []string
	for _, step := range p.Steps {
		if step.Action == action {
			out = append(out, step.Ref.String())
		}
	}
	return out
}

// ListSteps returns one line for each step, such as "create Pod shop/web", ordered by name. It leaves out children that
// are unchanged or kept, and returns nil if there is nothing to do.
func (p *Plan) ListSteps() []string {
	var out []string
	for _, step := range slices.SortedStableFunc(slices.Values(p.Steps), func(a, b Step) int {
		return cmp.Compare(a.Ref.String(), b.Ref.String())
	}) {
		if step.Action != ActionUnchanged && step.Action != ActionKeep {
			out = append(out, step.String())
		}
	}
	return out
}

// Object returns the desired object of a child. The name has the format of [apply.Ref.String], such as "Pod shop/web".
// Object returns nil if there is no such child.
func (p *Plan) Object(name string) map[string]any {
	for _, step := range p.Steps {
		if step.Ref.String() == name {
			return step.Object
		}
	}
	return nil
}
