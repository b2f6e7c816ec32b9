// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// attendance runs as long as the manager does. It listens to the channels of the graph and registers the metrics.
type attendance struct {
	*deployer

	rt  deployerlib.Runtime
	log logr.Logger
}

// NeedLeaderElection returns false, so the listeners run on every replica. On a replica that is not the leader they have no
// effect, because it has no items.
func (a *attendance) NeedLeaderElection() bool { return false }

// Start returns when ctx has ended and nothing runs any more.
func (a *attendance) Start(ctx context.Context) error {
	if err := a.rt.Registerer.Register(a.metrics.states); err != nil {
		return fmt.Errorf("register metrics of the state graph: %w", err)
	}
	defer a.rt.Registerer.Unregister(a.metrics.states)
	var listening sync.WaitGroup
	for _, events := range a.graph.channels() {
		listening.Go(func() { a.listen(ctx, events) })
	}
	<-ctx.Done()
	listening.Wait()
	return nil
}

// listen triggers runs of the items that a channel names, until the channel is closed or ctx ends.
func (a *attendance) listen(ctx context.Context, events <-chan types.NamespacedName) {
	for {
		select {
		case <-ctx.Done():
			return
		case name, open := <-events:
			if !open {
				return
			}
			if err := a.wake(ctx, name); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				a.log.Error(err, "a listener's notification is lost", "deployItem", name)
			}
		}
	}
}

// wake triggers a run of one item, or of all. Items that have not been seen yet get their first run anyway.
func (a *attendance) wake(ctx context.Context, name types.NamespacedName) error {
	c := a.rt.Landscaper.GetClient()
	if name != (types.NamespacedName{}) {
		di := &lsv1alpha1.DeployItem{}
		if err := c.Get(ctx, name, di); err != nil {
			return err
		}
		a.wakeIn(di.UID, 0)
		return nil
	}
	list := &lsv1alpha1.DeployItemList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		a.wakeIn(list.Items[i].UID, 0)
	}
	return nil
}

// channels returns the channels that components listen to, each once.
func (g *Graph) channels() []<-chan types.NamespacedName {
	var out []<-chan types.NamespacedName
	seen := map[<-chan types.NamespacedName]bool{}
	for i := range g.nodes {
		for _, l := range g.nodes[i].listeners {
			if l.kind == listensToChannel && !seen[l.events] {
				seen[l.events] = true
				out = append(out, l.events)
			}
		}
	}
	return out
}

// watches reports whether a component listens to its objects.
func (g *Graph) watches(component string) bool {
	place, found := g.index[component]
	if !found {
		return false
	}
	for _, l := range g.nodes[place].listeners {
		if l.kind == listensToObjects {
			return true
		}
	}
	return false
}

// metrics counts what runs find. The labels are components and states, never items.
type metrics struct {
	states *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{states: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_stategraph_component_states_total", Help: "What runs found components to be, by component and state.",
	}, []string{"component", "state"})}
}

// count records the states that a walk found.
func (m *metrics) count(states []ComponentStatus) {
	for _, s := range states {
		m.states.WithLabelValues(s.Name, string(s.State)).Inc()
	}
}
