// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// What a component may not keep must not get into the inventory, or it would be deleted in the end.
func TestClaimsOfWhatRuns(t *testing.T) {
	same := func(context.Context) (*corev1.ConfigMap, error) { return configMap("same", nil), nil }
	c := newCluster()
	w := walkItem(t, build(t, NewGraph().Add("a", Object(same)).Add("b", Object(same))), itemNamed("i"), c)
	if diff := cmp.Diff([][]string{{"a"}}, c.claims); diff != "" || w.errs[1] == nil {
		t.Error(diff, w.errs)
	}
}

// Of several that wait the one decides that wants to be asked first.
func TestShortestWait(t *testing.T) {
	wait := func(after time.Duration) Resource {
		return External(ExternalSpec{Reconcile: func(context.Context) error { return deployerlib.WaitFor("a mail", after) }})
	}
	g := build(t, NewGraph().Add("a", wait(time.Minute)).Add("b", wait(30*time.Second)).Add("c", wait(time.Hour)))
	if _, next := newRun(g, itemNamed("i"), newCluster(), nil, logr.Discard(), 1).walk(t.Context()); next != 30*time.Second {
		t.Error(next)
	}
}

// Who judges an object gets a copy: others are given the same object.
func TestJudgesGetCopies(t *testing.T) {
	judge := ReadyWhen(func(live *unstructured.Unstructured) (Readiness, error) {
		live.SetName("changed")
		return Ready(), nil
	})
	c := newCluster()
	if w := walkItem(t, build(t, NewGraph().Add("a", Object(oneConfigMap, judge))), itemNamed("i"), c); !w.ready() {
		t.Fatal(w.err())
	}
	for ref, obj := range c.objects {
		if obj.GetName() != ref.Name {
			t.Errorf("%s is called %s", ref, obj.GetName())
		}
	}
}

// Where one text ends and the next begins is part of a hash.
func TestHashOfSeveral(t *testing.T) {
	if hash("ab", "c") == hash("a", "bc") || hash("a", "") == hash("", "a") {
		t.Error("different texts have one hash")
	}
}
