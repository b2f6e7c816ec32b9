// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// ConditionReady is the condition of a deploy item that sums up its graph: True when all components are ready.
const ConditionReady lsv1alpha1.ConditionType = "GraphReady"

// Reasons of ConditionReady.
const (
	ReasonReady       = "AllReady"
	ReasonProgressing = "Progressing"
	ReasonFailed      = "Failed"
	ReasonRemoving    = "Removing"
)

// StateRemoving is the state of a component that left the graph, or whose item is deleted, while what it left behind goes.
const StateRemoving State = "Removing"

// result is what a call came to: err, or what is waited for, or neither.
type result struct {
	err    error
	waits  string
	moving bool // a component makes progress, whatever the error
}

// conclude puts what a walk and the removal after it came to into the status, and says what that means for the item.
func (c *call) conclude(w *walked, left []ComponentStatus, removal error) result {
	walkErr := c.failure(w)
	c.status.Components, c.status.Omitted = w.componentStatuses()
	c.status.Components = append(left, c.status.Components...)
	waits := summary(slices.Concat(w.states, left))
	switch {
	case walkErr != nil:
		c.condition(lsv1alpha1.ConditionFalse, ReasonFailed, waits)
	case !w.ready():
		c.condition(lsv1alpha1.ConditionFalse, ReasonProgressing, waits)
	case len(left) > 0:
		c.condition(lsv1alpha1.ConditionFalse, ReasonRemoving, waits)
	default:
		c.condition(lsv1alpha1.ConditionTrue, ReasonReady, fmt.Sprintf("all %d components are ready", len(w.states)))
	}
	return result{err: errors.Join(walkErr, c.run.ApplyError(removal)), waits: waits, moving: w.moving()}
}

// condition sets the condition of the item, in memory.
func (c *call) condition(status lsv1alpha1.ConditionStatus, reason, message string) {
	now := c.keeper.Runtime().Clock.Now()
	c.item.Status.Conditions = contract.SetCondition(c.item.Status.Conditions, ConditionReady, status, reason, message, now)
}

// failure joins the errors of all components. As long as others make progress none of them ends the job, whatever its
// code: what does not depend on the failed ones gets done first.
func (c *call) failure(w *walked) error {
	if all := w.err(); w.ended != nil || errors.Is(all, deployerlib.ErrSuperseded) {
		return all
	}
	moving := w.moving()
	refused := false
	var errs []error
	for place, err := range w.errs {
		if err == nil {
			continue
		}
		err = fmt.Errorf("component %s: %w", w.graph.nodes[place].component, err)
		switch {
		case moving:
			err = errors.New(err.Error())
		case isFinal(err):
			err = lserrors.NewError("Ready", "ObjectFailed", line(err.Error()), lsv1alpha1.ErrorConfigurationProblem)
		case !refused || !isRefused(err): // one refusal of credentials is one, however many components met it
			refused = refused || isRefused(err)
			err = c.run.ApplyError(err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isFinal reports whether an error is that of an object that will never be ready.
func isFinal(err error) bool {
	failed, ok := errors.AsType[*objectError](err)
	return ok && failed.final
}

// isRefused tells that a target refused the credentials.
func isRefused(err error) bool {
	one, ok := errors.AsType[*apply.Error](err)
	return ok && one.Status == metav1.StatusReasonUnauthorized
}

// maxSummary is how many components a summary names.
const maxSummary = 5

// summary tells in one line who waits for what: "haproxy, service blocked by database: StatefulSet.apps db/galera: Ready: 1/3".
// Empty when all are ready.
func summary(states []ComponentStatus) string {
	blocked := map[string][]string{}
	for _, s := range states {
		for _, by := range s.BlockedBy {
			blocked[by] = append(blocked[by], s.Name)
		}
	}
	var parts []string
	for _, s := range states {
		if s.State == StateReady || s.State == StateBlocked {
			continue
		}
		part := s.Name + ": " + s.Reason
		if behind := blocked[s.Name]; len(behind) > 0 {
			part = named(behind) + " blocked by " + part
		}
		parts = append(parts, part)
	}
	if more := len(parts) - maxSummary; more > 0 {
		parts = append(parts[:maxSummary], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// named lists names, not too many.
func named(names []string) string {
	if more := len(names) - maxSummary; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxSummary], ", "), more)
	}
	return strings.Join(names, ", ")
}
