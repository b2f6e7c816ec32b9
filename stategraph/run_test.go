// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// TestComponentCannotClaimObjectOfAnother checks that a component cannot claim an object that belongs to another
// component. Otherwise the library would later delete this object.
func TestComponentCannotClaimObjectOfAnother(t *testing.T) {
	same := func(context.Context) (*corev1.ConfigMap, error) { return newConfigMap("same", nil), nil }
	c := newFakeSession()
	w := visitItemInOrder(t, mustBuild(t, NewBuilder().Add("a", Object(same)).Add("b", Object(same))), newItem("i"), c)
	if diff := cmp.Diff([][]string{{"a"}}, c.claims); diff != "" || w.errs[1] == nil {
		t.Error(diff, w.errs)
	}
}

// TestShortestWait checks that the component with the shortest wait determines the time of the next run.
func TestShortestWait(t *testing.T) {
	wait := func(after time.Duration) Resource {
		return External(ExternalSpec{Reconcile: func(context.Context) error { return deployerlib.WaitFor("a mail", after) }})
	}
	g := mustBuild(t, NewBuilder().Add("a", wait(time.Minute)).Add("b", wait(30*time.Second)).Add("c", wait(time.Hour)))
	if _, next := newRun(g, newItem("i"), newFakeSession(), nil, logr.Discard(), 1).visitAll(t.Context()); next != 30*time.Second {
		t.Errorf("the next run is after %s, want 30s", next)
	}
}

// TestReadyWhenGetsCopy checks that the function that was passed to ReadyWhen receives a copy of the object. Other code
// uses the same object.
func TestReadyWhenGetsCopy(t *testing.T) {
	judge := ReadyWhen(func(live *unstructured.Unstructured) (Readiness, error) {
		live.SetName("changed")
		return Ready(), nil
	})
	c := newFakeSession()
	if w := visitItem(t, mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap, judge))), newItem("i"), c); !w.isReady() {
		t.Fatal(w.err())
	}
	for ref, obj := range c.objects {
		if obj.GetName() != ref.Name {
			t.Errorf("%s is called %s", ref, obj.GetName())
		}
	}
}

// TestHashDependsOnBoundaries checks that the hash depends on where one text ends and the next begins.
func TestHashDependsOnBoundaries(t *testing.T) {
	if hash("ab", "c") == hash("a", "bc") || hash("a", "") == hash("", "a") {
		t.Error("different texts have one hash")
	}
}

// TestReturnedObjectsAreCopied checks that the library copies the object that a component returns, before it adds the
// labels of the item. The component may return the same object for all items.
func TestReturnedObjectsAreCopied(t *testing.T) {
	shared := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}}
	before := shared.DeepCopy()
	g := mustBuild(t, NewBuilder().Add("a", Object(func(context.Context) (*unstructured.Unstructured, error) { return shared, nil })))
	if w := visitItem(t, g, newItem("i"), newFakeSession()); !w.isReady() {
		t.Fatal(w.err())
	}
	if diff := cmp.Diff(before, shared); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestEmptyListOfListeners(t *testing.T) {
	unready := func(context.Context) (Readiness, error) { return Readiness{}, nil }
	spec := ExternalSpec{Reconcile: func(context.Context) error { return nil }, Ready: unready, Listeners: []Listener{}}
	t.Run("an empty list of listeners counts as no listener [Y11]", func(t *testing.T) {
		if _, err := NewBuilder().Add("a", External(spec)).Build(); err == nil {
			t.Error("no run would check it again")
		}
	})
}

func TestStatusOfAnotherDeployer(t *testing.T) {
	for _, apiVersion := range []string{"another.example.com/v1alpha1", "stategraph.deployerkit.dev/v2"} {
		item := newItem("i")
		item.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"` + apiVersion + `","kind":"ProviderStatus"}`)}
		if _, err := decodeStatus(item); err == nil {
			t.Errorf("%s is taken for our own", apiVersion)
		}
	}
}

func TestSummaryOfMaximumLength(t *testing.T) {
	var states []ComponentStatus
	for range maxSummary {
		states = append(states, ComponentStatus{Name: "a", State: StateProgressing, Reason: "waits"})
	}
	if got := formatSummary(states); strings.Contains(got, "more") || strings.Count(got, "waits") != maxSummary {
		t.Errorf("summary(...) = %q, want all %d states", got, maxSummary)
	}
}
