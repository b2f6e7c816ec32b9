// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/stategraph"
)

// mainEnd is the end of the name of the main object. Each item has a main object.
const mainEnd = "0"

// newGraph returns the graph of the state-graph deployer. The graph describes the same objects as the function
// `handle`. The value of the main object is exported, and all other objects require the main object.
func newGraph() *stategraph.Graph {
	graph, err := stategraph.NewBuilderOf[childrenConfig]().
		Add("main", stategraph.Object(stategraph.WithConfig(func(ctx stategraph.Context[childrenConfig]) (*corev1.ConfigMap, error) {
			return newGraphConfigMap(ctx, ctx.Config, mainEnd)
		}), stategraph.WithOutput("value", ".data."+dataKey))).
		Add("others", stategraph.ForEach(
			stategraph.WithConfig(func(ctx stategraph.Context[childrenConfig]) ([]string, error) {
				return sortKeys(withoutMain(ctx.Config.Maps)), nil
			}),
			func(end string) string { return end },
			stategraph.Object(stategraph.WithConfig(func(ctx stategraph.Context[childrenConfig]) (*corev1.ConfigMap, error) {
				end, err := stategraph.Element[string](ctx)
				if err != nil {
					return nil, err
				}
				return newGraphConfigMap(ctx, ctx.Config, end)
			})),
		), "main").
		AddExport(dataKey, "main", "value").
		Build()
	if err != nil {
		panic(fmt.Sprintf("the graph of the test: %v", err))
	}
	return graph
}

// withoutMain returns the entries of a configuration without the entry of the main object.
func withoutMain(maps map[string]string) map[string]string {
	out := map[string]string{}
	for end, value := range maps {
		if end != mainEnd {
			out[end] = value
		}
	}
	return out
}

// newGraphConfigMap returns the ConfigMap for an entry of the configuration.
func newGraphConfigMap(ctx context.Context, config *childrenConfig, end string) (*corev1.ConfigMap, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: object(item.Name, end)},
		Data:       map[string]string{dataKey: config.Maps[end]},
	}, nil
}
