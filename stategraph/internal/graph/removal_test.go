// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemoval(t *testing.T) {
	chain := map[string][]string{"web": {"db"}, "db": {"config", "service"}, "job": {"config"}}
	for name, test := range map[string]struct {
		requires map[string][]string
		gone     []string
		want     [][]string
	}{
		"in reverse order, at once what may go at once [Yx7]": {chain, []string{"config", "db", "job", "service", "web"}, [][]string{{"job", "web"}, {"db"}, {"config", "service"}}},
		"only what is gone [Yx7]":                             {chain, []string{"db"}, [][]string{{"db"}}},
		"the order holds across what stays [Yx7]":             {chain, []string{"config", "web"}, [][]string{{"web"}, {"config"}}},
		"what nothing is known about goes at once [Yx7]":      {chain, []string{"odd", "web"}, [][]string{{"odd", "web"}}},
		"a circle goes together, in its place [Yx7]": {
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b", "d"}}, []string{"a", "b", "c", "d"}, [][]string{{"a"}, {"b", "c"}, {"d"}},
		},
		"what requires itself": {map[string][]string{"a": {"a"}}, []string{"a"}, [][]string{{"a"}}},
		"nothing":              {chain, nil, [][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				if diff := cmp.Diff(test.want, Removal(test.requires, test.gone)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}
