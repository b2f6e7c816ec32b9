// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

// newItem returns a deploy item whose UID is derived from its name.
func newItem(name string) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("uid-" + name)}}
}

// newItemWithConfig returns a deploy item with a configuration.
func newItemWithConfig(name, config string) *lsv1alpha1.DeployItem {
	item := newItem(name)
	item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(config)}
	return item
}

// fakeSession is a target cluster in memory. It also implements the session of a run.
type fakeSession struct {
	claiming sync.Mutex
	mu       sync.Mutex
	objects  map[apply.Ref]*unstructured.Unstructured
	unready  map[string]string                     // the reason why an object is not ready, by the name of the object
	waiting  string                                // the field Waiting of each outcome
	broken   error                                 // the error that Claim returns
	claims   [][]string                            // one entry each time the inventory is stored: the claimed objects
	stored   []string                              // the objects in the stored inventory
	bytes    int                                   // the number of bytes that were stored
	applied  map[string]int                        // the number of calls of Apply, by component
	desired  map[*unstructured.Unstructured]string // the component of each desired object
	reads    int
}

func newFakeSession() *fakeSession {
	return &fakeSession{objects: map[apply.Ref]*unstructured.Unstructured{}, unready: map[string]string{}, applied: map[string]int{}, desired: map[*unstructured.Unstructured]string{}}
}

func (c *fakeSession) Claim(_ context.Context, one claim, foresee func() []claim) error {
	c.claiming.Lock()
	defer c.claiming.Unlock()
	if !c.addNames(one) {
		return nil
	}
	names := []string{one.Component}
	for _, other := range foresee() {
		if c.addNames(other) {
			names = append(names, other.Component)
		}
	}
	c.claims = append(c.claims, names)
	for _, name := range c.stored {
		c.bytes += len(name)
	}
	if c.broken != nil {
		return fmt.Errorf("store the inventory: %w", c.broken)
	}
	return nil
}

// addNames adds a claim to the inventory.
func (c *fakeSession) addNames(one claim) bool {
	before := len(c.stored)
	names := []string{}
	if one.Undo {
		names = append(names, one.Component)
	}
	for _, d := range one.Desired {
		c.desired[d.Object] = one.Component
		names = append(names, apply.ToRef(d.Object).String())
	}
	for _, name := range names {
		if !slices.Contains(c.stored, name) {
			c.stored = append(c.stored, name)
		}
	}
	return len(c.stored) > before
}

// getClaimedCounts returns the number of different objects that each component has claimed.
func (c *fakeSession) getClaimedCounts() map[string]int {
	out := map[string]int{}
	for _, component := range c.desired {
		out[component]++
	}
	return out
}

func (*fakeSession) Forget(apply.Ref) {}

// Find finds objects by name, or by their labels.
func (c *fakeSession) Find(_ context.Context, _ string, wanted search) ([]*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*unstructured.Unstructured
	for ref, obj := range c.objects {
		if ref == wanted.Ref() || wanted.Name == "" && ref.GVK() == wanted.Kind && labels.SelectorFromSet(wanted.Labels).Matches(labels.Set(obj.GetLabels())) {
			out = append(out, obj)
		}
	}
	return out, nil
}

func (c *fakeSession) CheckReadiness(_ context.Context, live *unstructured.Unstructured) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unready[live.GetName()], nil
}

func (c *fakeSession) Apply(_ context.Context, of unit, desired []apply.Desired) ([]apply.ApplyResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied[of.Component]++
	var out []apply.ApplyResult
	for _, d := range desired {
		c.objects[apply.ToRef(d.Object)] = d.Object.DeepCopy()
		out = append(out, apply.ApplyResult{Ref: apply.ToRef(d.Object), Changed: true, WaitMessage: c.waiting})
	}
	return out, nil
}

func (c *fakeSession) Delete(_ context.Context, refs []apply.Ref) ([]apply.Waiting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		delete(c.objects, ref)
	}
	return nil, nil
}

func (c *fakeSession) Ready(_ context.Context, ref apply.Ref, judge readinessFunc) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if judge != nil {
		return judge(c.objects[ref])
	}
	return c.unready[ref.Name], nil
}

func (c *fakeSession) Get(_ context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return c.objects[ref], nil
}

// listNames returns the names of all objects.
func (c *fakeSession) listNames() []string {
	var out []string
	for ref := range maps.Keys(c.objects) {
		out = append(out, ref.Kind+" "+ref.Name)
	}
	slices.Sort(out)
	return out
}

// visitItem walks a graph for an item.
func visitItem(t testing.TB, g *Graph, item *lsv1alpha1.DeployItem, c *fakeSession) *walkResult {
	t.Helper()
	w, _ := newRun(g, item, c, nil, logr.Discard(), 4).visitAll(t.Context())
	return w
}

// visitItemInOrder is like visitItem, but visits one component at a time.
func visitItemInOrder(t testing.TB, g *Graph, item *lsv1alpha1.DeployItem, c *fakeSession) *walkResult {
	t.Helper()
	w, _ := newRun(g, item, c, nil, logr.Discard(), 1).visitAll(t.Context())
	return w
}

// runItem is like visitItem, but first decodes the configuration of the item.
func runItem(t testing.TB, g *Graph, item *lsv1alpha1.DeployItem, c *fakeSession) (*walkResult, error) {
	t.Helper()
	config, err := g.decodeConfig(item)
	if err != nil {
		return nil, err
	}
	r := newRun(g, item, c, nil, logr.Discard(), 4)
	r.config = config
	w, _ := r.visitAll(t.Context())
	return w, nil
}

// mustBuild builds a graph that has no faults.
func mustBuild(t testing.TB, b *Builder) *Graph {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newConfigMap returns a ConfigMap with some data.
func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: data}
}
