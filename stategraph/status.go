// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// ConditionReady is a condition of the deploy item. It summarizes the states of the components, and is True if all of
// them are ready.
const ConditionReady lsv1alpha1.ConditionType = "GraphReady"

// These are the reasons of ConditionReady.
const (
	reasonReady       = "AllReady"
	reasonProgressing = "Progressing"
	reasonFailed      = "Failed"
	reasonRemoving    = "Removing"
)

// StateRemoving means that the component is being deleted and some of its objects still exist. Either the graph no
// longer contains the component, or the whole item is being deleted.
const StateRemoving State = "Removing"

// result is the outcome of a walk of the graph.
type result struct {
	err         error
	waitReason  string // the reason why the item is not complete, or "" if it is complete
	progressing bool   // a later run may complete a component, although others have failed for good
}

// updateStatus writes the result of a walk to the status of the item in memory. The removal of the components in left
// is not complete, and removal is its error.
func (c *call) updateStatus(w *walkResult, left []ComponentStatus, removal error) result {
	err, moving := c.joinErrors(w, removal)
	c.status.Components, c.status.Omitted = w.toComponentStatuses()
	c.status.Components = append(left, c.status.Components...)
	waits := formatSummary(slices.Concat(w.states, left))
	switch {
	case w.err() != nil:
		c.setCondition(lsv1alpha1.ConditionFalse, reasonFailed, waits)
	case !w.isReady():
		c.setCondition(lsv1alpha1.ConditionFalse, reasonProgressing, waits)
	case len(left) > 0:
		c.setCondition(lsv1alpha1.ConditionFalse, reasonRemoving, waits)
	default:
		c.setCondition(lsv1alpha1.ConditionTrue, reasonReady, fmt.Sprintf("all %d components are ready", len(w.states)))
	}
	return result{err: err, waitReason: waits, progressing: moving}
}

// setCondition sets the condition GraphReady of the item in memory.
func (c *call) setCondition(status lsv1alpha1.ConditionStatus, reason, message string) {
	now := c.manager.GetRuntime().Clock.Now()
	c.item.Status.Conditions = contract.SetCondition(c.item.Status.Conditions, ConditionReady, status, reason, message, now)
}

// joinErrors joins the errors of all components and of the removal. While a later run may complete a component, the
// joined error contains no error codes that end the job. This is the case if a component makes progress, or has failed
// with a transient error. The result `moving` is true if a component makes progress, or if an error code was omitted.
func (c *call) joinErrors(w *walkResult, removal error) (joined error, moving bool) {
	moving = w.isProgressing()
	if all := errors.Join(w.err(), removal); w.ended != nil || errors.Is(all, deployerlib.ErrSuperseded) {
		return all, moving
	}
	errs := w.listErrors()
	if removal != nil {
		errs = append(errs, removal)
	}
	again, refused := moving, false
	for i, err := range errs {
		repeated := refused && managed.IsUnauthorized(err) // several components may report the same refusal
		refused = refused || managed.IsUnauthorized(err)
		if isFinal(err) {
			errs[i] = lserrors.NewError("Ready", "ObjectFailed", toLine(formatError(err)), lsv1alpha1.ErrorConfigurationProblem)
		} else if !repeated {
			errs[i] = c.run.ConvertApplyError(err)
		}
		again = again || managed.IsTransient(err)
	}
	for i, err := range errs {
		if again && isUnrecoverable(err) {
			errs[i], moving = errors.New(formatError(err)), true
		}
	}
	return errors.Join(errs...), moving
}

// formatError returns the text of err on one line, without the operation and the reason of Landscaper's errors.
func formatError(err error) string { return contract.NewError(err, "", "", time.Time{}).Message }

// isUnrecoverable reports whether err has an error code that makes a retry pointless.
func isUnrecoverable(err error) bool { return contract.HasUnrecoverableCode(contract.ErrorCodes(err)) }

// isFinal reports whether err means that an object has failed and cannot recover.
func isFinal(err error) bool {
	failed, ok := errors.AsType[*target.ObjectError](err)
	return ok && failed.Final
}

// maxSummary is the maximum number of components in a summary.
const maxSummary = 5

// formatSummary returns one line that names the components that are not ready, such as "haproxy, service blocked by
// database: StatefulSet.apps db/galera: Ready: 1/3". It is empty if all components are ready.
func formatSummary(states []ComponentStatus) string {
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
			part = joinNames(behind) + " blocked by " + part
		}
		parts = append(parts, part)
	}
	if more := len(parts) - maxSummary; more > 0 {
		parts = append(parts[:maxSummary], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// joinNames joins at most maxSummary names.
func joinNames(names []string) string {
	if more := len(names) - maxSummary; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxSummary], ", "), more)
	}
	return strings.Join(names, ", ")
}

// StatusGVK is the apiVersion and kind of ProviderStatus.
var StatusGVK = schema.GroupVersionKind{Group: "stategraph.deployerkit.dev", Version: "v1alpha1", Kind: "ProviderStatus"}

// ProviderStatus is the provider status of the items of a graph.
type ProviderStatus struct {
	metav1.TypeMeta `json:",inline"`
	// ObservedGeneration is the generation of the item in the last run.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Components contains the states of the components, in the order in which the components were added. It has at most
	// 200 entries. If there are more components, ready components are omitted first.
	Components []ComponentStatus `json:"components,omitempty"`
	// Omitted is the number of components that Components does not contain.
	Omitted int `json:"omitted,omitempty"`
	// Undo lists, ordered by name, the components whose Delete must be called when the item is deleted. A component
	// with a Delete is added before its first Reconcile.
	Undo []UndoEntry `json:"undo,omitempty"`
	// Inventory lists the objects of the item in the target cluster.
	Inventory apply.Inventory `json:"inventory"`
}

// UndoEntry names a component whose Delete must be called when the item is deleted. Requires lists the components that
// may be deleted only after this component.
type UndoEntry struct {
	Name     string   `json:"n"`
	Requires []string `json:"q,omitempty"`
}

// These constants limit the number of components in a status, and the number of entries in BlockedBy of a component.
const (
	maxStatusComponents = 200
	maxStatusBlockers   = 10
)

// toComponentStatuses returns the component states for the status of an item. If there are more than
// maxStatusComponents, it omits some of them, ready components first. The second result is the number of omitted
// components.
func (w *walkResult) toComponentStatuses() (components []ComponentStatus, omitted int) {
	omitted = max(0, len(w.states)-maxStatusComponents)
	ready := 0 // the number of ready components that are omitted so far
	for _, state := range w.states {
		if state.State == StateReady && ready < omitted {
			ready++
			continue
		}
		state.BlockedBy = slices.Clip(state.BlockedBy[:min(len(state.BlockedBy), maxStatusBlockers)])
		components = append(components, state)
	}
	return components[:min(len(components), maxStatusComponents)], omitted
}

const statusPath = "status.providerStatus"

// decodeStatus decodes the stored provider status of an item. It returns an empty status if there is none.
func decodeStatus(di *lsv1alpha1.DeployItem) (*ProviderStatus, error) {
	status := &ProviderStatus{}
	if raw := di.Status.ProviderStatus; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, status); err != nil {
			return nil, deployerlib.NewConfigError(statusPath, "%s", err.Error())
		}
		if got := status.GroupVersionKind(); got != StatusGVK {
			return nil, deployerlib.NewConfigError(statusPath, "is of kind %s, want %s; another deployer wrote it", got, StatusGVK)
		}
	}
	status.SetGroupVersionKind(StatusGVK)
	return status, nil
}

// store stores the status in the item in memory.
func (s *ProviderStatus) store(di *lsv1alpha1.DeployItem) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the provider status: %w", err)
	}
	di.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return nil
}

// finalizers implements target.Undo with the field Undo of a ProviderStatus.
type finalizers struct{ *ProviderStatus }

// AddFinalizer adds a component to Undo. It reports whether the component is new.
func (s finalizers) AddFinalizer(of unit) bool {
	i, found := slices.BinarySearchFunc(s.Undo, of.Component, func(e UndoEntry, name string) int { return strings.Compare(e.Name, name) })
	if found {
		s.Undo[i].Requires = of.Requires
		return false
	}
	s.Undo = slices.Insert(s.Undo, i, UndoEntry{Name: of.Component, Requires: of.Requires})
	return true
}

// RemoveFinalizer removes a component from Undo.
func (s finalizers) RemoveFinalizer(component string) {
	s.Undo = slices.DeleteFunc(s.Undo, func(e UndoEntry) bool { return e.Name == component })
}
