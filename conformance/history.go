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

// landscaper is the field manager of everything that the suite itself writes.
const landscaper = "landscaper"

// History is every version of every deploy item of a namespace, as the API server stored them since [Record]. It is safe
// for concurrent use.
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
	broken   string // why there are no more versions
}

// Record watches the deploy items of a namespace until Stop; the end of ctx does not end it. The items that are there
// already are its first versions. Use it in tests of your own, to hold what a deployer does there to the same rules as
// [Run] does; revision is the contract that is played. The stand-in for Landscaper must write as the field manager "landscaper"
// (client.WithFieldOwner): others must not write a spec.
//
//	history, err := conformance.Record(ctx, c, "default", contract.RevisionJobID)
//	… // the test
//	err = history.Sync(ctx)
//	history.Stop()
//	for _, fault := range history.Faults() {
//		t.Error(fault)
//	}
//
// Errors: the namespace cannot be watched.
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
		h.end("the watch ended early")
	}()
	return h, nil
}

func (h *History) add(event watch.Event) {
	di, ok := event.Object.(*lsv1alpha1.DeployItem)
	if !ok {
		h.end(fmt.Sprintf("the watch broke: %v", event.Object))
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

// end notes that there are no more versions, unless that is wanted.
func (h *History) end(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.broken == "" {
		h.broken = why
	}
}

// Stop ends the watch and returns when nothing more is recorded. What was recorded stays. It must be called once.
func (h *History) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.events.Stop()
	<-h.drained
}

// Sync waits until the history has everything that is stored now, deletions too. Errors: ctx ended before, the items
// cannot be listed, the watch broke.
func (h *History) Sync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list := &lsv1alpha1.DeployItemList{}
		if err := h.client.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
			return false, err
		}
		if fault := h.fault(); fault != "" {
			return false, errors.New(fault)
		}
		return h.hasAll(list.Items), nil
	})
}

// hasAll reports whether these versions are recorded and all other items are gone.
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

// Versions returns all versions of an item so far, oldest first; nil when there are none. The last one of an item that is
// gone is its state when it was removed. The versions are shared: do not change them.
func (h *History) Versions(name string) []*lsv1alpha1.DeployItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// Names returns the items so far, in the order of their creation.
func (h *History) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// Faults holds the history so far to the rules ("at every moment" in [Checks]). Each line is the first fault of an item
// against a rule: the rule, the item, the version, what was seen. A history that is not whole, because its watch broke, is
// a fault too. Empty: all is well.
func (h *History) Faults() []string {
	var faults []string
	for _, c := range rulesOf(h.revision) {
		for _, name := range h.Names() {
			if fault := firstFault(c, h.Versions(name)); fault != "" {
				faults = append(faults, c.Name+": "+fault)
			}
		}
	}
	if fault := h.fault(); fault != "" {
		faults = append(faults, "history of namespace "+h.namespace+": "+fault)
	}
	return faults
}

// fault returns why the history is incomplete, or an empty string.
func (h *History) fault() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}

// has reports whether a version of an item was recorded.
func (h *History) has(name, resourceVersion string) bool {
	return slices.ContainsFunc(h.Versions(name), func(di *lsv1alpha1.DeployItem) bool { return di.ResourceVersion == resourceVersion })
}

// phasesOf are the phases that versions showed, in order, each once in a row.
func phasesOf(versions []*lsv1alpha1.DeployItem) []lsv1alpha1.DeployItemPhase {
	var seen []lsv1alpha1.DeployItemPhase
	for _, di := range versions {
		if p := di.Status.Phase; p != "" && (len(seen) == 0 || seen[len(seen)-1] != p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// String is the evidence: a line for each item with the phases that it showed.
func (h *History) String() string {
	var lines []string
	for _, name := range h.Names() {
		versions := h.Versions(name)
		path := []string{}
		for _, p := range phasesOf(versions) {
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
