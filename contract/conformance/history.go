// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// landscaper is the field manager of everything that the suite itself writes.
const landscaper = "landscaper"

// history is every version of every item of a namespace, as the API server stored them.
type history struct {
	events  watch.Interface
	drained chan struct{}

	mu       sync.Mutex
	order    []string
	versions map[string][]*lsv1alpha1.DeployItem
	gone     map[string]bool
	stopped  bool
	broken   string // why there are no more versions
}

// record watches a namespace until stop.
func record(ctx context.Context, c client.WithWatch, namespace string) (*history, error) {
	events, err := c.Watch(context.WithoutCancel(ctx), &lsv1alpha1.DeployItemList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch deploy items of namespace %s: %w", namespace, err)
	}
	h := &history{events: events, drained: make(chan struct{}), versions: map[string][]*lsv1alpha1.DeployItem{}, gone: map[string]bool{}}
	go func() {
		defer close(h.drained)
		for event := range events.ResultChan() {
			h.add(event)
		}
		h.end("the watch ended early")
	}()
	return h, nil
}

func (h *history) add(event watch.Event) {
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
func (h *history) end(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.broken == "" {
		h.broken = why
	}
}

// stop ends the watch.
func (h *history) stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.events.Stop()
	<-h.drained
}

// of returns all versions of an item so far.
func (h *history) of(name string) []*lsv1alpha1.DeployItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// deleted tells that the end of an item was recorded; no version follows, as long as nobody makes it again.
func (h *history) deleted(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[name]
}

// names are the items so far, in the order of their creation.
func (h *history) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// fault tells why the history is not whole; empty when it is.
func (h *history) fault() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}

// has tells whether a version of an item was recorded.
func (h *history) has(name, resourceVersion string) bool {
	return slices.ContainsFunc(h.of(name), func(di *lsv1alpha1.DeployItem) bool { return di.ResourceVersion == resourceVersion })
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

// summary is the evidence: what each item showed.
func (h *history) summary() string {
	var lines []string
	for _, name := range h.names() {
		versions := h.of(name)
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
