// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// ConditionReady is the condition of a deploy item that sums up its graph. It is True when all components are ready.
const ConditionReady lsv1alpha1.ConditionType = "GraphReady"

// These are the reasons of ConditionReady.
const (
	ReasonReady       = "AllReady"
	ReasonProgressing = "Progressing"
	ReasonFailed      = "Failed"
	ReasonRemoving    = "Removing"
)

// StateRemoving is the state of a component that left the graph, or whose item is deleted, while its remains are
// removed.
const StateRemoving State = "Removing"

// result is the result of a call. It holds an error, or what is waited for, or neither.
type result struct {
	err    error
	waits  string
	moving bool // a component makes progress, regardless of the error
}

// conclude writes the result of a walk and of the removal after it to the status, and returns what it means for the
// item.
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

// failure joins the errors of all components. As long as other components make progress, no error ends the job,
// regardless of its code, so that everything that does not depend on the failed components is done first.
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
		case !refused || !isRefused(err): // report one refusal of credentials once, however many components met it
			refused = refused || isRefused(err)
			err = c.run.ApplyError(err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isFinal reports whether an error is that of an object that will never be ready.
func isFinal(err error) bool {
	failed, ok := errors.AsType[*target.ObjectError](err)
	return ok && failed.Final
}

// isRefused reports whether a target refused the credentials.
func isRefused(err error) bool {
	one, ok := errors.AsType[*apply.Error](err)
	return ok && one.Status == metav1.StatusReasonUnauthorized
}

// maxSummary is how many components a summary names.
const maxSummary = 5

// summary says in one line which components wait for what, such as "haproxy, service blocked by database:
// StatefulSet.apps db/galera: Ready: 1/3". It is empty if all are ready.
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

// named lists a limited number of names.
func named(names []string) string {
	if more := len(names) - maxSummary; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxSummary], ", "), more)
	}
	return strings.Join(names, ", ")
}

// StatusGVK is the apiVersion and kind of ProviderStatus.
var StatusGVK = schema.GroupVersionKind{Group: "stategraph.deployerkit.dev", Version: "v1alpha1", Kind: "ProviderStatus"}

// ProviderStatus is what the deployer of a graph keeps in the status of its items.
type ProviderStatus struct {
	metav1.TypeMeta `json:",inline"`
	// ObservedGeneration is the generation of the item that the last run saw.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Components lists how far each component is, in the order of the graph. It has at most MaxStatusComponents
	// entries. Components that are ready are left out first.
	Components []ComponentStatus `json:"components,omitempty"`
	// Omitted is how many more components there are.
	Omitted int `json:"omitted,omitempty"`
	// Undo lists the components with a Delete that may have run, ordered by name. It is part of the inventory.
	Undo []UndoEntry `json:"undo,omitempty"`
	// Inventory lists the objects in the target cluster.
	Inventory apply.Inventory `json:"inventory"`
}

// UndoEntry is a component with a Delete that may have run.
type UndoEntry struct {
	Name     string   `json:"n"`
	Requires []string `json:"q,omitempty"`
}

// These are bounds of what a status says about components.
const (
	MaxStatusComponents = 200
	maxStatusBlockers   = 10
)

// componentStatuses returns what a status says about the components of a walk, and how many were left out. If there are
// too many, those that are not ready stay.
func (w *walked) componentStatuses() (components []ComponentStatus, omitted int) {
	omitted = max(0, len(w.states)-MaxStatusComponents)
	ready := 0 // how many ready ones are left out so far
	for _, state := range w.states {
		if state.State == StateReady && ready < omitted {
			ready++
			continue
		}
		state.BlockedBy = slices.Clip(state.BlockedBy[:min(len(state.BlockedBy), maxStatusBlockers)])
		components = append(components, state)
	}
	return components[:min(len(components), MaxStatusComponents)], omitted
}

const statusPath = "status.providerStatus"

// decodeStatus reads what an earlier run stored. It returns the zero status if there was none.
func decodeStatus(di *lsv1alpha1.DeployItem) (*ProviderStatus, error) {
	status := &ProviderStatus{}
	if raw := di.Status.ProviderStatus; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, status); err != nil {
			return nil, deployerlib.ConfigError(statusPath, "%s", err.Error())
		}
		if got := status.GroupVersionKind(); got != StatusGVK {
			return nil, deployerlib.ConfigError(statusPath, "is of %s, want %s: another deployer had the item before", got, StatusGVK)
		}
	}
	status.SetGroupVersionKind(StatusGVK)
	return status, nil
}

// store writes the status to the item, in memory.
func (s *ProviderStatus) store(di *lsv1alpha1.DeployItem) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the provider status: %w", err)
	}
	di.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return nil
}

// addFinalizer records that a component has something to undo. It reports whether that is new.
func (s *ProviderStatus) addFinalizer(of unit) bool {
	i, found := slices.BinarySearchFunc(s.Undo, of.Component, func(e UndoEntry, name string) int { return strings.Compare(e.Name, name) })
	if found {
		s.Undo[i].Requires = of.Requires
		return false
	}
	s.Undo = slices.Insert(s.Undo, i, UndoEntry{Name: of.Component, Requires: of.Requires})
	return true
}

// removeFinalizer records that a component has nothing to undo any more.
func (s *ProviderStatus) removeFinalizer(component string) {
	s.Undo = slices.DeleteFunc(s.Undo, func(e UndoEntry) bool { return e.Name == component })
}

// finalizers is the record of a status for the session in the target.
type finalizers struct{ status *ProviderStatus }

// AddFinalizer records that a component has something to undo. It reports whether that is new.
func (f finalizers) AddFinalizer(of target.Unit) bool { return f.status.addFinalizer(of) }

// RemoveFinalizer records that a component has nothing to undo any more.
func (f finalizers) RemoveFinalizer(component string) { f.status.removeFinalizer(component) }
