// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

const graphType lsv1alpha1.DeployItemType = "bench.deployerkit.dev/graph"

// graphWaves are the components of the graph. Each component requires all components of the previous wave.
var graphWaves = [][]string{{"base"}, {"left", "middle", "right"}, {"one", "two", "three"}, {"red", "green", "blue"}}

// graphLegs are the steps of the benchmark. In the first step, all objects are new. In the second step, there is
// nothing to do.
var graphLegs = []string{"everything new", "nothing to do"}

// BenchmarkStateGraph deploys 500 items with a graph of 10 components in two ways: with the library, and with a
// hand-written loop. If all objects are new, both send the same requests. The two contenders alternate after every 50
// items, so that other load on the machine affects both.
func BenchmarkStateGraph(b *testing.B) {
	cp := race.StartControlPlane(b)
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	runContenders(b, cp, graphLegs, itemsPerTurn, newGraph(), newGraphLoop()) // a warm-up, which is not measured
	var ours, theirs *competitor
	for b.Loop() {
		ours, theirs = newGraph(), newGraphLoop()
		runContenders(b, cp, graphLegs, items, ours, theirs)
	}
	printResults(b, graphLegs, ours, theirs)
}

// newGraph returns a contender that uses package stategraph.
func newGraph() *competitor {
	e := &competitor{name: "state graph", kind: graphType, target: &faultnet.Counter{}, own: &faultnet.Counter{}}
	e.add = func(mgr ctrl.Manager, e *competitor) error {
		builder := stategraph.NewBuilder()
		var before []string
		for _, wave := range graphWaves {
			for _, component := range wave {
				builder.Add(component, stategraph.Object(newGraphConfigMap), before...)
			}
			before = wave
		}
		graph, err := builder.Build()
		if err != nil {
			return err
		}
		args := stategraph.Args("bench.deployerkit.dev", graphType, graph, stategraph.Options{
			Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: e.wrapTarget,
		})
		args.Registerer, args.Options.MaxConcurrentReconciles = prometheus.NewRegistry(), workers
		return deployerlib.Add(logr.Discard(), mgr, nil, args)
	}
	return e
}

// newGraphConfigMap returns the ConfigMap of a component.
func newGraphConfigMap(ctx context.Context) (*corev1.ConfigMap, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return newGraphObject(item, stategraph.Component(ctx)), nil
}

func newGraphObject(item *lsv1alpha1.DeployItem, component string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name + "-" + component},
		Data:       map[string]string{"component": component, "text": strings.Repeat("x", 200)},
	}
}
