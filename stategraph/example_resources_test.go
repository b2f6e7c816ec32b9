// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

// Hosting is spec.config of the items.
type Hosting struct {
	Namespace string            `json:"namespace"`
	Domain    string            `json:"domain"`
	Sites     map[string]string `json:"sites"`
}

// listSites returns the sites of an item.
func listSites(ctx context.Context) ([]string, error) {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(config.Sites)), nil
}

// newPage returns the page of one site. The library computes the name of the object from the names of the
// component and the instance.
func newPage(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace},
		Data:       map[string]string{"index.html": config.Sites[stategraph.Instance(ctx)]},
	}, nil
}

// newEntrance returns the Service that makes the sites accessible from outside the cluster.
func newEntrance(ctx context.Context) (*corev1.Service, error) {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}}},
	}, nil
}

// zone is a DNS zone. After a call of Set, it takes some time until Has returns true.
type zone interface {
	Set(ctx context.Context, domain, address string) error
	Has(ctx context.Context, domain string) (bool, error)
	Remove(ctx context.Context, domain string) error
}

// record maintains the DNS record for the domain of an item.
type record struct{ zone zone }

func (r record) set(ctx context.Context) error {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return err
	}
	entrance, err := stategraph.Output[*corev1.Service](ctx, "entrance") // the Service in the cluster; it is ready, so it has an address
	if err != nil {
		return err
	}
	return r.zone.Set(ctx, config.Domain, entrance.Status.LoadBalancer.Ingress[0].IP)
}

func (r record) checkReady(ctx context.Context) (stategraph.Readiness, error) {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return stategraph.Readiness{}, err
	}
	there, err := r.zone.Has(ctx, config.Domain)
	return stategraph.ReadyIf(there, "the name server does not know the record yet"), err
}

func (r record) remove(ctx context.Context) error {
	config, err := stategraph.Config[Hosting](ctx)
	if err != nil {
		return err
	}
	return r.zone.Remove(ctx, config.Domain)
}

func newHostingGraph(zone zone) (*stategraph.Graph, error) {
	dns := record{zone: zone}
	self := func(site string) string { return site }
	return stategraph.NewBuilder().
		Add("pages", stategraph.ForEach(listSites, self, stategraph.Object(newPage))).
		Add("entrance", stategraph.Object(newEntrance), "pages").
		Add("record", stategraph.External(stategraph.ExternalSpec{
			Reconcile: dns.set,
			Ready:     dns.checkReady,
			Delete:    dns.remove,
			Listeners: []stategraph.Listener{stategraph.Poll(10 * time.Second)},
			Rules:     []rbacv1.PolicyRule{}, // the record needs no rights in the target
		}), "entrance").
		Build()
}

func ExampleForEach() {
	graph, err := newHostingGraph(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Order())
	// Output: [pages entrance record]
}

// This version of the graph no longer contains the component "record". The library calls the function `remove` for each
// item that still has a record.
func ExampleBuilder_AddRemoved() {
	var zone zone
	graph, err := stategraph.NewBuilder().
		Add("pages", stategraph.ForEach(listSites, func(site string) string { return site }, stategraph.Object(newPage))).
		Add("entrance", stategraph.Object(newEntrance), "pages").
		AddRemoved("record", record{zone: zone}.remove).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Components())
	// Output: [pages entrance]
}
