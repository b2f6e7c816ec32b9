// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// Trace records the steps of reconciles. To use a Trace, set DeployerArgs.Observe to its method Observe. The zero value
// is ready to use. It is safe for concurrent use.
type Trace struct {
	mu    sync.Mutex
	steps map[types.NamespacedName][]deployerlib.Step
}

// Observe records a step.
func (t *Trace) Observe(s deployerlib.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil {
		t.steps = map[types.NamespacedName][]deployerlib.Step{}
	}
	t.steps[s.Item] = append(t.steps[s.Item], s)
}

// Steps returns the steps of an item so far, in order.
func (t *Trace) Steps(item types.NamespacedName) []deployerlib.Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]deployerlib.Step(nil), t.steps[item]...)
}

// Forget removes the steps of an item.
func (t *Trace) Forget(item types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.steps, item)
}

// Format returns the recorded reconciles of an item as text. The text contains nothing that varies between test runs.
// Each step is one line. The steps of a reconcile follow a line with the number of the reconcile:
//
//	reconcile 1
//	start → proceed
//	contract → AfterResponsibilityCheck[0] → no opinion
//	contract → proceed (NewJob)
//	write → status
//	call → reconcile
func (t *Trace) Format(item types.NamespacedName) string {
	var b strings.Builder
	pass, inStart := 0, false
	for _, s := range t.Steps(item) {
		start := isStart(s)
		if start && (!inStart || pass == 0) {
			pass++
			fmt.Fprintf(&b, "reconcile %d\n", pass)
		}
		// The steps of hooks in the start phase come before the step of the phase itself.
		inStart = start && s.Kind == deployerlib.StepHook
		b.WriteString(formatStep(s) + "\n")
	}
	return b.String()
}

// isStart reports whether a step belongs to the first phase of a reconcile.
func isStart(s deployerlib.Step) bool {
	return s.Kind == deployerlib.StepPhase && s.Name == "start" ||
		s.Kind == deployerlib.StepHook && findHookPhase(s.Name) == "start"
}

// findHookPhase returns the phase in which a hook runs. The name of the hook's step has the form "<Type> <name>".
func findHookPhase(name string) string {
	hookType, _, _ := strings.Cut(name, " ")
	point, _ := extension.GetHookPoint(extension.HookType(hookType))
	return point.Phase
}

// formatStep returns one step as text.
func formatStep(s deployerlib.Step) string {
	line := ""
	switch s.Kind {
	case deployerlib.StepHook:
		_, hook, _ := strings.Cut(s.Name, " ")
		line = fmt.Sprintf("%s → %s → %s", findHookPhase(s.Name), hook, formatOutcome(s))
	case deployerlib.StepPhase:
		line = s.Name + " → " + s.Outcome
	default:
		line = string(s.Kind) + " → " + s.Name
	}
	if s.Reason != "" {
		line += " (" + string(s.Reason) + ")"
	}
	if s.Err != nil {
		line += ": " + s.Err.Error()
	}
	return line
}

// formatOutcome returns the outcome that a hook requested.
func formatOutcome(s deployerlib.Step) string {
	switch {
	case s.Err != nil:
		return "error"
	case s.Outcome == "":
		return "no opinion"
	}
	return s.Outcome
}
