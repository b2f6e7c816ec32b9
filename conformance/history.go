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

// History has every version of every deploy item of a namespace that the API server stored since [Record]. It is safe
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

// Record watches the deploy items of a namespace until Stop, even after ctx is done. Existing items are the first
// versions. Use Record in other tests to check a deployer against the same rules as [Run]. revision is the revision of
// the contract that the test follows. The part of the test that plays Landscaper must use the field manager
// "landscaper" (client.WithFieldOwner), because no other client may write a spec.
//
//	history, err := conformance.Record(ctx, c, "default", contract.RevisionJobID)
//	… // the test
//	err = history.Sync(ctx)
//	history.Stop()
//	for _, fault := range history.Faults() {
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

// end records why there are no more versions, unless the watch was stopped.
func (h *History) end(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.broken == "" {
		h.broken = why
	}
}

// Stop ends the watch and returns when nothing more is recorded. The recorded versions are kept. Call it exactly once.
func (h *History) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.events.Stop()
	<-h.drained
}

// Sync waits until the history includes everything that is stored now, including deletions. It returns an error if ctx
// is done before, if the items cannot be listed, or if the watch broke.
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

// hasAll reports whether these versions are recorded and all other items are deleted.
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

// Versions returns all versions of an item so far, oldest first, or nil if there are none. The last version of a
// deleted item is its state at the deletion. The versions are shared and must not be changed.
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

// Faults checks the history so far against the rules ("at every moment" in [Checks]). Each line is the first fault of
// an item against a rule: the rule, the item, the version, and what was observed. A history that is incomplete because
// its watch broke is a fault too. Faults returns an empty list if there are none.
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

// phasesOf returns the phases of the versions in order, without consecutive duplicates.
func phasesOf(versions []*lsv1alpha1.DeployItem) []lsv1alpha1.DeployItemPhase {
	var seen []lsv1alpha1.DeployItemPhase
	for _, di := range versions {
		if p := di.Status.Phase; p != "" && (len(seen) == 0 || seen[len(seen)-1] != p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// String returns the evidence: a line for each item with its phases.
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
