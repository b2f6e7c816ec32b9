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

	"github.com/deployerkit/deployerkit/explain"
)

func meta(name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: before(time.Hour), Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

// shop returns an Installation with a subinstallation. The Execution of the subinstallation manages two items. shop
// also returns an item that no Execution manages.
func shop() []client.Object {
	root := &lsv1alpha1.Installation{ObjectMeta: meta("root")}
	root.Status.InstallationPhase = "Failed"
	sub := &lsv1alpha1.Installation{ObjectMeta: meta("sub", lsv1alpha1.EncompassedByLabel, "root")}
	sub.Status.InstallationPhase = "Failed"
	sub.Status.ExecutionReference = &lsv1alpha1.ObjectReference{Namespace: "shop", Name: "sub"}
	exec := &lsv1alpha1.Execution{ObjectMeta: meta("sub")}
	exec.Status.ExecutionPhase = "Failed"
	web := facts(finished("Failed", time.Hour), provider(inventory), failing("Apply", "Refused", "no quota\x1b[2J")).Item
	web.Labels[lsv1alpha1.ExecutionManagedByLabel] = "sub"
	fine := facts(finished("Succeeded", time.Hour)).Item
	fine.Name, fine.UID, fine.Labels[lsv1alpha1.ExecutionManagedByLabel] = "fine", "fine", "sub"
	alone := facts(finished("Succeeded", time.Hour), unmanaged).Item
	alone.Name, alone.UID = "alone", "alone"
	return []client.Object{root, sub, exec, web, fine, alone, facts().Target}
}

// target returns a reader for a target cluster. The cluster contains the Deployment in the inventory, the dependents of
// this Deployment, and other objects.
func target(t *testing.T) client.Reader {
	t.Helper()
	owned := func(name, kind, by string) metav1.ObjectMeta {
		m := meta(name)
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by, UID: types.UID(by), Controller: new(true)}}
		return m
	}
	web := &appsv1.Deployment{ObjectMeta: meta("web")}
	web.Spec.Replicas = new(int32(1))
	pod := &corev1.Pod{ObjectMeta: owned("web-1-a", "ReplicaSet", "web-1")}
	pod.Status.Phase = corev1.PodPending
	return cluster(t, nil, web, &appsv1.ReplicaSet{ObjectMeta: owned("web-1", "Deployment", "web")}, pod,
		&corev1.Pod{ObjectMeta: owned("other", "ReplicaSet", "other")}, &corev1.ConfigMap{ObjectMeta: meta("settings")})
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

// outline returns a line with kind, name and phase for each node of a tree.
func outline(nodes []*explain.TreeNode, indent string) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s%s %s %s\n%s", indent, n.Kind, n.Name, n.Phase, outline(n.Children, indent+" "))
	}
	return b.String()
}

func TestTree(t *testing.T) {
	open := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) { return target(t), nil, nil }
	const stored = `Installation root Failed
 Installation sub Failed
  Execution sub Failed
   DeployItem fine Succeeded
   DeployItem web Failed
    Service web not written
    ConfigMap settings applied
    Deployment web applied
`
	t.Run("the tree shows an Installation with its objects [E8]", func(t *testing.T) {
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{Name: "root"})
		if diff := cmp.Diff(stored, outline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows all objects of a namespace [E8]", func(t *testing.T) {
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{})
		if diff := cmp.Diff(stored+"DeployItem alone Succeeded\n", outline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows live objects if the Target can be read [E8]", func(t *testing.T) {
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{Name: "web", Open: open})
		want := `DeployItem web Failed
 Service web Missing
 ConfigMap settings Ready
 Deployment web Waiting
  ReplicaSet web-1 Waiting
   Pod web-1-a Waiting
`
		got := outline(tree.Roots, "")
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
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data")}
		claim.Spec.StorageClassName, claim.Status.Phase = new("local"), corev1.ClaimPending
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
		open := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
			return cluster(t, nil, lamp, claim, class), nil, nil
		}
		item := facts(finished("Succeeded", time.Hour), provider(`{"inventory": {"entries": [
			{"v": "batch/v1", "k": "Job", "ns": "shop", "n": "migrate", "u": "1", "h": "1", "f": "g"},
			{"v": "example.org/v1", "k": "Lamp", "ns": "shop", "n": "hall", "u": "2", "h": "1"},
			{"v": "v1", "k": "PersistentVolumeClaim", "ns": "shop", "n": "data", "u": "3", "h": "1"}]}}`))
		tree := readTree(t, cluster(t, nil, item.Item, item.Target), explain.TreeOptions{Name: "web", Open: open})
		want := "DeployItem web Succeeded\n Job migrate Finished\n Lamp hall Ready\n PersistentVolumeClaim data Ready\n"
		if diff := cmp.Diff(want, outline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if slices.ContainsFunc(tree.Roots[0].Children, func(n *explain.TreeNode) bool { return n.Failed }) {
			t.Errorf("one of these objects has failed:\n%s", outline(tree.Roots, ""))
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
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{Name: "web", Open: open})
		if got := outline(tree.Roots, ""); strings.Contains(got, "Missing") || !strings.Contains(got, "Deployment web Unknown") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the tree shows failed objects and their owners [E8]", func(t *testing.T) {
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{})
		tree.OnlyFailed()
		want := "Installation root Failed\n Installation sub Failed\n  Execution sub Failed\n   DeployItem web Failed\n"
		if diff := cmp.Diff(want, outline(tree.Roots, "")); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
	t.Run("the tree shows the stored status if a Target cannot be reached [E8]", func(t *testing.T) {
		refused := func(context.Context, *lsv1alpha1.Target) (client.Reader, func(), error) {
			return nil, nil, errors.New("refused")
		}
		tree := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{Name: "web", Open: refused})
		if !strings.Contains(outline(tree.Roots, ""), "Deployment web applied") || len(tree.Unknown) != 1 {
			t.Errorf("got %s, unknown %+v", outline(tree.Roots, ""), tree.Unknown)
		}
	})
	t.Run("the tree shows objects as unknown that it may not read [E8]", func(t *testing.T) {
		tree := readTree(t, cluster(t, func(kind string) bool { return kind == "Execution" }, shop()...), explain.TreeOptions{Name: "root"})
		if len(tree.Unknown) != 1 || !strings.Contains(outline(tree.Roots, ""), "Installation sub") {
			t.Errorf("got %s, unknown %+v", outline(tree.Roots, ""), tree.Unknown)
		}
	})
	t.Run("the tree reports that no object has the name [E8]", func(t *testing.T) {
		_, err := explain.ReadTree(t.Context(), cluster(t, nil), explain.TreeOptions{Namespace: "shop", Name: "none"})
		if err == nil || !strings.Contains(err.Error(), "there is no Installation, Execution or DeployItem shop/none") {
			t.Errorf("error = %v, want an error that contains %q", err, "there is no Installation, Execution or DeployItem shop/none")
		}
	})
}

func TestTreeText(t *testing.T) {
	t.Run("the text has short lines without control characters [E2]", func(t *testing.T) {
		text := readTree(t, cluster(t, nil, shop()...), explain.TreeOptions{}).Text(explain.Style{})
		for line := range strings.SplitSeq(text, "\n") {
			if utf8.RuneCountInString(line) > explain.Width || strings.Contains(line, "\x1b") {
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
