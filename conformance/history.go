// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// fieldManager is the field manager that this package uses for its own writes.
const fieldManager = "landscaper"

// History contains the versions of all deploy items of a namespace. It contains every version that the API server has
// stored since [Record] was called. History is safe for concurrent use.
type History struct {
	client    client.Reader
	namespace string
	revision  contract.Revision
	events    watch.Interface
	drained   chan struct{}

	mu       sync.Mutex
	order    []string
	versions map[string][]*lsv1alpha1.DeployItem
	gone     map[string]bool
	stopped  bool
	broken   string // why the watch ended unexpectedly
}

// Record watches the deploy items of a namespace until Stop is called, even after ctx is done. The history begins with
// the items that exist already. Use Record in other tests to check a deployer against the same rules as [Run]. The
// parameter revision is the revision of the contract that the test follows. A test that acts for Landscaper must use
// the field manager "landscaper" (client.WithFieldOwner), because only this field manager may change the spec of an
// item.
//
//	history, err := conformance.Record(ctx, c, "default", contract.RevisionJobID)
//	… // the test
//	err = history.Sync(ctx)
//	history.Stop()
//	for _, fault := range history.ListViolations() {
//		t.Error(fault)
//	}
//
// Record returns an error if the namespace cannot be watched.
func Record(ctx context.Context, c client.WithWatch, namespace string, revision contract.Revision) (*History, error) {
	events, err := c.Watch(context.WithoutCancel(ctx), &lsv1alpha1.DeployItemList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch deploy items of namespace %s: %w", namespace, err)
	}
	h := &History{
		client: c, namespace: namespace, revision: revision, events: events, drained: make(chan struct{}),
		versions: map[string][]*lsv1alpha1.DeployItem{}, gone: map[string]bool{},
	}
	go func() {
		defer close(h.drained)
		for event := range events.ResultChan() {
			h.add(event)
		}
		h.setBroken("the watch ended unexpectedly")
	}()
	return h, nil
}

func (h *History) add(event watch.Event) {
	di, ok := event.Object.(*lsv1alpha1.DeployItem)
	if !ok {
		h.setBroken(fmt.Sprintf("the watch failed: %v", event.Object))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.versions[di.Name]; !known {
		h.order = append(h.order, di.Name)
	}
	h.versions[di.Name] = append(h.versions[di.Name], di)
	h.gone[di.Name] = event.Type == watch.Deleted
}

// setBroken records why the watch ended, unless Stop ended it.
func (h *History) setBroken(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.broken == "" {
		h.broken = why
	}
}

// Stop ends the watch. After it has returned, nothing more is recorded. The recorded versions remain available. Call
// Stop exactly once.
func (h *History) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.events.Stop()
	<-h.drained
}

// Sync waits until the history includes every write and every deletion that the API server stored before the call. It
// returns an error if ctx is done before that, if the items cannot be listed, or if the watch has ended unexpectedly.
func (h *History) Sync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &lsv1alpha1.DeployItemList{}
		if err := h.client.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
			return false, err
		}
		if fault := h.getIncompleteReason(); fault != "" {
			return false, errors.New(fault)
		}
		return h.hasAll(list.Items), nil
	})
}

// hasAll reports whether the history contains these versions of the items. It also requires that the history contains
// the deletion of every other item.
func (h *History) hasAll(items []lsv1alpha1.DeployItem) bool {
	there := map[string]bool{}
	for i := range items {
		there[items[i].Name] = true
		if !h.has(items[i].Name, items[i].ResourceVersion) {
			return false
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(h.order, func(name string) bool { return !there[name] && !h.gone[name] })
}

// GetVersions returns the versions of an item so far, oldest first. It returns nil if there are none. The last version
// of a deleted item is the version that was deleted. The caller must not change the versions.
func (h *History) GetVersions(name string) []*lsv1alpha1.DeployItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// ListNames returns the names of the items so far, in the order of their creation.
func (h *History) ListNames() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// ListViolations checks the history so far against the rules. The rules are those [AllChecks] that must hold at every
// moment: the text of such a check, [Check.Promise], begins with these words. ListViolations returns the violations, or
// an empty list. For each item and rule, only the first violation is listed, with the rule, the item, the version, and
// a description. If the watch has ended unexpectedly, ListViolations also reports that the history is incomplete.
func (h *History) ListViolations() []string {
	var faults []string
	for _, c := range listRules(h.revision) {
		for _, name := range h.ListNames() {
			if fault := findViolation(c, h.GetVersions(name)); fault != "" {
				faults = append(faults, c.Name+": "+fault)
			}
		}
	}
	if fault := h.getIncompleteReason(); fault != "" {
		faults = append(faults, "history of namespace "+h.namespace+": "+fault)
	}
	return faults
}

// getIncompleteReason returns the reason why the history is incomplete, or "" if it is complete.
func (h *History) getIncompleteReason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}

// has reports whether a version of an item was recorded.
func (h *History) has(name, resourceVersion string) bool {
	return slices.ContainsFunc(h.GetVersions(name), func(di *lsv1alpha1.DeployItem) bool { return di.ResourceVersion == resourceVersion })
}

// listPhases returns the phases of the versions in order. It omits consecutive duplicates.
func listPhases(versions []*lsv1alpha1.DeployItem) []lsv1alpha1.DeployItemPhase {
	var seen []lsv1alpha1.DeployItemPhase
	for _, di := range versions {
		if p := di.Status.Phase; p != "" && (len(seen) == 0 || seen[len(seen)-1] != p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// String returns one line for each item, with the phases of the item. Checks use it as evidence.
func (h *History) String() string {
	var lines []string
	for _, name := range h.ListNames() {
		versions := h.GetVersions(name)
		path := []string{}
		for _, p := range listPhases(versions) {
			path = append(path, string(p))
		}
		if len(path) == 0 {
			path = append(path, "no phase")
		}
		line := fmt.Sprintf("%s: %s (%d versions)", name, strings.Join(path, " > "), len(versions))
		if e := versions[len(versions)-1].Status.LastError; e != nil {
			line += fmt.Sprintf("; %s %v: %s", e.Reason, e.Codes, contract.OneLine(e.Message, 120))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
