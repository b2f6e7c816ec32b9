// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/internal/explain"
)

func newObjectMeta(name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: newTimeBefore(time.Hour), Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

// newShopObjects returns an Installation with a subinstallation. The Execution of the subinstallation manages two
// items. shop also returns an item that no Execution manages.
func newShopObjects() []client.Object {
	root := &lsv1alpha1.Installation{ObjectMeta: newObjectMeta("root")}
	root.Status.InstallationPhase = "Failed"
	sub := &lsv1alpha1.Installation{ObjectMeta: newObjectMeta("sub", lsv1alpha1.EncompassedByLabel, "root")}
	sub.Status.InstallationPhase = "Failed"
	sub.Status.ExecutionReference = &lsv1alpha1.ObjectReference{Namespace: "shop", Name: "sub"}
	exec := &lsv1alpha1.Execution{ObjectMeta: newObjectMeta("sub")}
	exec.Status.ExecutionPhase = "Failed"
	web := newFacts(withFinishedRun("Failed", time.Hour), withProviderStatus(inventory), withLastError("Apply", "Refused", "no quota\x1b[2J")).Item
	web.Labels[lsv1alpha1.ExecutionManagedByLabel] = "sub"
	fine := newFacts(withFinishedRun("Succeeded", time.Hour)).Item
	fine.Name, fine.UID, fine.Labels[lsv1alpha1.ExecutionManagedByLabel] = "fine", "fine", "sub"
	alone := newFacts(withFinishedRun("Succeeded", time.Hour), withoutExecution).Item
	alone.Name, alone.UID = "alone", "alone"
	return []client.Object{root, sub, exec, web, fine, alone, newFacts().Target}
}

// newTarget returns a reader for a target cluster. The cluster contains the Deployment in the inventory, the dependents
// of this Deployment, and other objects.
func newTarget(t *testing.T) client.Reader {
	t.Helper()
	owned := func(name, kind, by string) metav1.ObjectMeta {
		m := newObjectMeta(name)
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by, UID: types.UID(by), Controller: new(true)}}
		return m
	}
	web := &appsv1.Deployment{ObjectMeta: newObjectMeta("web")}
	web.Spec.Replicas = new(int32(1))
	pod := &corev1.Pod{ObjectMeta: owned("web-1-a", "ReplicaSet", "web-1")}
	pod.Status.Phase = corev1.PodPending
	return newCluster(t, nil, web, &appsv1.ReplicaSet{ObjectMeta: owned("web-1", "Deployment", "web")}, pod,
		&corev1.Pod{ObjectMeta: owned("other", "ReplicaSet", "other")}, &corev1.ConfigMap{ObjectMeta: newObjectMeta("settings")})
}

func readTree(t *testing.T, c client.Reader, o explain.TreeOptions) *explain.Tree {
	t.Helper()
	o.Namespace, o.Clock = "shop", clocktesting.NewFakePassiveClock(now)
	tree, err := explain.ReadTree(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// formatOutline returns a line with kind, name and phase for each node of a tree.
func formatOutline(nodes []*explain.TreeNode, indent string) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s%s %s %s\n%s", indent, n.Kind, n.Name, n.Phase, formatOutline(n.Children, indent+" "))
	}
	return b.String()
}

func TestTree(t *testing.T) {
	open := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
		return newTarget(t), nil, nil
	}
	const stored = `Installation root Failed
 Installation sub Failed
  Execution sub Failed
   DeployItem fine Succeeded
   DeployItem web Failed
    Service web not written
    ConfigMap settings applied
    Deployment web applied
`
	t.Run("the tree shows an Installation with its objects [V8]", func(t *testing.T) {
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{Name: "root"})
		if diff := cmp.Diff(stored, formatOutline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows all objects of a namespace [V8]", func(t *testing.T) {
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{})
		if diff := cmp.Diff(stored+"DeployItem alone Succeeded\n", formatOutline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows live objects if the Target can be read [V8]", func(t *testing.T) {
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{Name: "web", Open: open})
		want := `DeployItem web Failed
 Service web Missing
 ConfigMap settings Ready
 Deployment web Waiting
  ReplicaSet web-1 Waiting
   Pod web-1-a Waiting
`
		got := formatOutline(tree.Roots, "")
		if !strings.Contains(got, "   Pod web-1-a") || !strings.Contains(got, "Service web Missing") || strings.Contains(got, "other") {
			t.Errorf("-want, +got:\n%s", cmp.Diff(want, got))
		}
	})
	t.Run("the tree determines readiness like the deployers [F76, F91, F94]", func(t *testing.T) {
		lamp := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Lamp", "spec": map[string]any{"on": true}}}
		lamp.SetNamespace("shop")
		lamp.SetName("hall")
		lamp.SetGeneration(1)
		lamp.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Minute)))
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: newObjectMeta("data")}
		claim.Spec.StorageClassName, claim.Status.Phase = new("local"), corev1.ClaimPending
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
		open := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
			return newCluster(t, nil, lamp, claim, class), nil, nil
		}
		item := newFacts(withFinishedRun("Succeeded", time.Hour), withProviderStatus(`{"inventory": {"entries": [
			{"v": "batch/v1", "k": "Job", "ns": "shop", "n": "migrate", "u": "1", "h": "1", "f": "g"},
			{"v": "example.org/v1", "k": "Lamp", "ns": "shop", "n": "hall", "u": "2", "h": "1"},
			{"v": "v1", "k": "PersistentVolumeClaim", "ns": "shop", "n": "data", "u": "3", "h": "1"}]}}`))
		tree := readTree(t, newCluster(t, nil, item.Item, item.Target), explain.TreeOptions{Name: "web", Open: open})
		want := "DeployItem web Succeeded\n Job migrate Finished\n Lamp hall Ready\n PersistentVolumeClaim data Ready\n"
		if diff := cmp.Diff(want, formatOutline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if slices.ContainsFunc(tree.Roots[0].Children, func(n *explain.TreeNode) bool { return n.Failed }) {
			t.Errorf("one of these objects has failed:\n%s", formatOutline(tree.Roots, ""))
		}
	})
	t.Run("the tree shows an object as missing only if the response names it [F70]", func(t *testing.T) {
		proxy := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
		open := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
			get := func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return proxy
			}
			return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: get}), nil, nil
		}
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{Name: "web", Open: open})
		if got := formatOutline(tree.Roots, ""); strings.Contains(got, "Missing") || !strings.Contains(got, "Deployment web Unknown") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the tree shows failed objects and their owners [V8]", func(t *testing.T) {
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{})
		tree.FilterFailed()
		want := "Installation root Failed\n Installation sub Failed\n  Execution sub Failed\n   DeployItem web Failed\n"
		if diff := cmp.Diff(want, formatOutline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows the stored status if a Target cannot be reached [V8]", func(t *testing.T) {
		refused := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
			return nil, nil, errors.New("refused")
		}
		tree := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{Name: "web", Open: refused})
		if !strings.Contains(formatOutline(tree.Roots, ""), "Deployment web applied") || len(tree.Unknown) != 1 {
			t.Errorf("got %s, unknown %+v", formatOutline(tree.Roots, ""), tree.Unknown)
		}
	})
	t.Run("the tree shows objects as unknown that it may not read [V8]", func(t *testing.T) {
		tree := readTree(t, newCluster(t, func(kind string) bool { return kind == "Execution" }, newShopObjects()...), explain.TreeOptions{Name: "root"})
		if len(tree.Unknown) != 1 || !strings.Contains(formatOutline(tree.Roots, ""), "Installation sub") {
			t.Errorf("got %s, unknown %+v", formatOutline(tree.Roots, ""), tree.Unknown)
		}
	})
	t.Run("the tree reports that no object has the name [V8]", func(t *testing.T) {
		_, err := explain.ReadTree(t.Context(), newCluster(t, nil), explain.TreeOptions{Namespace: "shop", Name: "none"})
		if err == nil || !strings.Contains(err.Error(), "there is no Installation, Execution or DeployItem shop/none") {
			t.Errorf("error = %v, want an error that contains %q", err, "there is no Installation, Execution or DeployItem shop/none")
		}
	})
}

func TestTreeText(t *testing.T) {
	t.Run("the text has short lines without control characters [V2]", func(t *testing.T) {
		text := readTree(t, newCluster(t, nil, newShopObjects()...), explain.TreeOptions{}).Format(explain.Style{})
		for line := range strings.SplitSeq(text, "\n") {
			if utf8.RuneCountInString(line) > explain.MaxLineWidth || strings.Contains(line, "\x1b") {
				t.Errorf("line %q", line)
			}
		}
		for _, want := range []string{"Installation root: Failed, 1h0m\n└─ Installation sub: Failed", "DeployItem web: Failed, 1h0m, no quota"} {
			if !strings.Contains(text, want) {
				t.Errorf("want %q in:\n%s", want, text)
			}
		}
	})
}
