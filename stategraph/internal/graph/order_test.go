// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupForRemoval(t *testing.T) {
	chain := map[string][]string{"web": {"db"}, "db": {"config", "service"}, "job": {"config"}}
	for name, test := range map[string]struct {
		requires map[string][]string
		gone     []string
		want     [][]string
	}{
		"components are removed in reverse order, independent ones together [Yx7]": {chain, []string{"config", "db", "job", "service", "web"}, [][]string{{"job", "web"}, {"db"}, {"config", "service"}}},
		"only the given components are removed [Yx7]":                              {chain, []string{"db"}, [][]string{{"db"}}},
		"the order includes requirements through components that stay [Yx7]":       {chain, []string{"config", "web"}, [][]string{{"web"}, {"config"}}},
		"components without known requirements are removed first [Yx7]":            {chain, []string{"odd", "web"}, [][]string{{"odd", "web"}}},
		"the components of a cycle are removed together [Yx7]": {
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b", "d"}}, []string{"a", "b", "c", "d"}, [][]string{{"a"}, {"b", "c"}, {"d"}},
		},
		"a component that requires itself is removed": {map[string][]string{"a": {"a"}}, []string{"a"}, [][]string{{"a"}}},
		"no component is removed":                     {chain, nil, [][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				if diff := cmp.Diff(test.want, GroupForRemoval(test.requires, test.gone)); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
		})
	}
}
