// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/stategraph"
)

// settings is the Go type of spec.config for most items.
type settings struct {
	Value string   `json:"value,omitempty"`
	Names []string `json:"names,omitempty"`
}

// build builds a graph. It fails the spec if Build returns an error.
func build(b *stategraph.Builder) *stategraph.Graph {
	GinkgoHelper()
	g, err := b.Build()
	Expect(err).NotTo(HaveOccurred())
	return g
}

// newConfigMap returns a component with a ConfigMap that contains the value from the item's configuration.
func newConfigMap(name string, opts ...stategraph.Option) stategraph.Resource {
	return stategraph.Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
		config, err := stategraph.Config[settings](ctx)
		if err != nil {
			return nil, err
		}
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + "-" + name},
			Data:       map[string]string{"value": config.Value},
		}, nil
	}, opts...)
}

// callRecorder records which functions of components are called for each item, in order.
type callRecorder struct {
	mu    sync.Mutex
	calls map[string]int
	order []string
}

func newProbe() *callRecorder { return &callRecorder{calls: map[string]int{}} }

// record records a call. The context identifies the item.
func (p *callRecorder) record(ctx context.Context) error {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[item.Name]++
	p.order = append(p.order, stategraph.Component(ctx))
	return nil
}

func (p *callRecorder) getCount(item string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[item]
}

// listComponents returns the names of the components that were called, in order.
func (p *callRecorder) listComponents() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.order...)
}

// newExternal returns a component that only records its runs.
func (p *callRecorder) newExternal(listeners ...stategraph.Listener) stategraph.Resource {
	return stategraph.External(stategraph.ExternalSpec{Reconcile: p.record, Listeners: listeners})
}

// gate is a component that becomes ready for an item when a spec opens the gate for this item. Opening the gate
// triggers no run.
type gate struct {
	mu   sync.Mutex
	open map[string]bool
}

func newGate() *gate { return &gate{open: map[string]bool{}} }

func (g *gate) set(item string, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[item] = open
}

// checkReady reports whether the gate is open for the item. It is used as the function Ready of an External.
func (g *gate) checkReady(ctx context.Context) (stategraph.Readiness, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return stategraph.Readiness{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return stategraph.ReadyIf(g.open[item.Name], "the gate is shut"), nil
}

// newNames returns n names that consist of a prefix and a number.
func newNames(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return out
}

// invalidConfigMap returns an object that no API server accepts.
func invalidConfigMap(ctx context.Context) (*unstructured.Unstructured, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": item.Namespace, "name": item.Name}, "data": "text",
	}}, nil
}
