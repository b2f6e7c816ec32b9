// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemovalWaves(t *testing.T) {
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
				if diff := cmp.Diff(test.want, removalWaves(test.requires, test.gone)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestRelations(t *testing.T) {
	t.Run("what is stored wins, no body is evaluated [Yx7]", func(t *testing.T) {
		never := Object(func(context.Context) (*fakeObject, error) { t.Error("a body was evaluated"); return nil, nil })
		g := build(t, NewGraph().Add("a", never).Add("b", stub{}, "a").Add("c", never, "b"))
		requires := g.relations(map[string][]string{"a": {"old"}, "old": {}})
		want := map[string][]string{"a": {"old"}, "old": {}, "b": {"a"}, "c": {"b"}}
		if diff := cmp.Diff(want, requires); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]string{{"c"}, {"a"}, {"old"}}, removalWaves(requires, []string{"a", "c", "old"})); diff != "" {
			t.Error(diff)
		}
	})
}
