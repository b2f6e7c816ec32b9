// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// channelListener is the Runnable of a deployer. It listens to the channels of the graph and registers the metrics.
type channelListener struct {
	*deployer

	rt  deployerlib.Runtime
	log logr.Logger
}

// NeedLeaderElection returns false, so that the channels are read on every replica. On a replica that is not the
// leader, a notification has no effect, because that replica has no items.
func (a *channelListener) NeedLeaderElection() bool { return false }

// Start runs until ctx ends. It returns when all goroutines have ended.
func (a *channelListener) Start(ctx context.Context) error {
	if err := a.rt.Registerer.Register(a.states); err != nil {
		return fmt.Errorf("register metrics of the state graph: %w", err)
	}
	defer a.rt.Registerer.Unregister(a.states)
	var listening sync.WaitGroup
	for _, events := range a.graph.listChannels() {
		listening.Go(func() { a.listen(ctx, events) })
	}
	<-ctx.Done()
	listening.Wait()
	return nil
}

// listen receives names of items from a channel and triggers a run of each named item. It returns when the channel is
// closed or ctx ends.
func (a *channelListener) listen(ctx context.Context, events <-chan types.NamespacedName) {
	for {
		select {
		case <-ctx.Done():
			return
		case name, open := <-events:
			if !open {
				return
			}
			if err := a.triggerRuns(ctx, name); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				a.log.Error(err, "could not trigger the run that a channel requested", "deployItem", name)
			}
		}
	}
}

// triggerRuns triggers a run of one item, or of all items if the name is empty. Items that the deployer has not seen
// yet are ignored, because their first run takes place anyway.
func (a *channelListener) triggerRuns(ctx context.Context, name types.NamespacedName) error {
	c := a.rt.Landscaper.GetClient()
	if name != (types.NamespacedName{}) {
		di := &lsv1alpha1.DeployItem{}
		if err := c.Get(ctx, name, di); err != nil {
			return err
		}
		a.triggerAfter(di.UID, 0)
		return nil
	}
	list := &lsv1alpha1.DeployItemList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		a.triggerAfter(list.Items[i].UID, 0)
	}
	return nil
}

// listChannels returns the channels that components listen to, without duplicates.
func (g *Graph) listChannels() []<-chan types.NamespacedName {
	var out []<-chan types.NamespacedName
	for i := range g.nodes {
		for _, l := range g.nodes[i].listeners {
			if l.kind == listenerKindChannel && !slices.Contains(out, l.events) {
				out = append(out, l.events)
			}
		}
	}
	return out
}

// watches reports whether a component listens to its objects.
func (g *Graph) watches(component string) bool {
	place, found := g.index[component]
	return found && slices.ContainsFunc(g.nodes[place].listeners, func(l Listener) bool { return l.kind == listenerKindObjects })
}

// newStates returns a counter. Each run increments it once per component, with the name and the state of the component
// as labels. The labels do not identify items, because there could be too many.
func newStates() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deployerkit_stategraph_component_states_total", Help: "States of components at the end of runs, by component and state.",
	}, []string{"component", "state"})
}
