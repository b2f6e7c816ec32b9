// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

func TestMergeRequirements(t *testing.T) {
	t.Run("stored requirements are used without calling a body [Yx7]", func(t *testing.T) {
		never := Object(func(context.Context) (*fakeObject, error) { t.Error("a body was evaluated"); return nil, nil })
		g := mustBuild(t, NewBuilder().Add("a", never).Add("b", stubResource{}, "a").Add("c", never, "b"))
		requires := g.mergeRequirements([]apply.Entry{{ComponentInfo: apply.ComponentInfo{Component: "a", Requires: []string{"old"}}}}, []UndoEntry{{Name: "old"}})
		want := map[string][]string{"a": {"old"}, "old": nil, "b": {"a"}, "c": {"b"}}
		if diff := cmp.Diff(want, requires); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"c"}, {"a"}, {"old"}}, graph.GroupForRemoval(requires, []string{"a", "c", "old"})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
