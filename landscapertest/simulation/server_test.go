// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/deployerkit/deployerkit/landscapertest/simulation"
)

// newConfigMaps returns an empty server and a client for its ConfigMaps.
func newConfigMaps(t *testing.T) (*simulation.Server, typedcorev1.ConfigMapInterface) {
	t.Helper()
	server, err := simulation.NewServer(simulation.DefaultKinds()...)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(server.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	return server, clients.CoreV1().ConfigMaps("default")
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1"}}
}

func TestServerObjects(t *testing.T) {
	t.Run("an update of an old version is a conflict, and an update without a change stores nothing [Z4]", func(t *testing.T) {
		_, maps := newConfigMaps(t)
		created, err := maps.Create(t.Context(), newConfigMap("x"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		same, err := maps.Update(t.Context(), created.DeepCopy(), metav1.UpdateOptions{})
		if err != nil || same.ResourceVersion != created.ResourceVersion {
			t.Fatalf("an update without a change: version %s instead of %s, error %v", same.ResourceVersion, created.ResourceVersion, err)
		}
		changed := created.DeepCopy()
		changed.Data["a"] = "2"
		if _, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an update of an old version: %v", err)
		}
		if _, err := maps.Create(t.Context(), newConfigMap("x"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second creation: %v", err)
		}
	})
	t.Run("an object with a finalizer is deleted when the finalizer is removed [Z4]", func(t *testing.T) {
		_, maps := newConfigMaps(t)
		obj := newConfigMap("x")
		obj.Finalizers = []string{"example.com/a"}
		created, err := maps.Create(t.Context(), obj, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		other := types.UID("other")
		if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
			t.Errorf("a deletion of another UID: %v", err)
		}
		if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &created.UID}}); err != nil {
			t.Fatal(err)
		}
		marked, err := maps.Get(t.Context(), "x", metav1.GetOptions{})
		if err != nil || marked.DeletionTimestamp == nil {
			t.Fatalf("after the deletion: %v, error %v", marked, err)
		}
		if _, err := maps.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the finalizer was removed: %v", err)
		}
	})
	t.Run("server-side apply keeps the fields of other managers [Z4]", func(t *testing.T) {
		_, maps := newConfigMaps(t)
		mine := func(value string) *corev1apply.ConfigMapApplyConfiguration {
			return corev1apply.ConfigMap("x", "default").WithData(map[string]string{"mine": value})
		}
		if _, err := maps.Apply(t.Context(), mine("1"), metav1.ApplyOptions{FieldManager: "me"}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"data":{"mine":"2","other":"2"}}`), metav1.PatchOptions{FieldManager: "you"}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Apply(t.Context(), mine("1"), metav1.ApplyOptions{FieldManager: "me"}); !apierrors.IsConflict(err) {
			t.Fatalf("an apply of a field that another manager changed: %v", err)
		}
		forced, err := maps.Apply(t.Context(), mine("3"), metav1.ApplyOptions{FieldManager: "me", Force: true})
		if err != nil || forced.Data["mine"] != "3" || forced.Data["other"] != "2" {
			t.Fatalf("with force: %v, error %v", forced.Data, err)
		}
		none := corev1apply.ConfigMap("x", "default")
		left, err := maps.Apply(t.Context(), none, metav1.ApplyOptions{FieldManager: "me"})
		if err != nil || len(left.Data) != 1 || left.Data["other"] != "2" {
			t.Errorf("after an apply without fields: %v, error %v", left.Data, err)
		}
	})
	t.Run("the status of an object is a subresource, and only other changes increase the generation [Z4]", func(t *testing.T) {
		server, _ := newConfigMaps(t)
		clients, err := kubernetes.NewForConfig(server.NewConfig())
		if err != nil {
			t.Fatal(err)
		}
		namespaces := clients.CoreV1().Namespaces()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
		created, err := namespaces.Create(t.Context(), ns, metav1.CreateOptions{})
		if err != nil || created.Status.Phase != "" || created.Generation != 1 {
			t.Fatalf("created: %v, error %v", created, err)
		}
		created.Status.Phase, created.Labels = corev1.NamespaceActive, map[string]string{"a": "b"}
		updated, err := namespaces.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		if err != nil || updated.Status.Phase != corev1.NamespaceActive || updated.Labels["a"] != "" || updated.Generation != 1 {
			t.Fatalf("after an update of the status: %v, error %v", updated, err)
		}
		updated.Spec.Finalizers = []corev1.FinalizerName{"example.com/a"}
		if updated, err = namespaces.Update(t.Context(), updated, metav1.UpdateOptions{}); err != nil || updated.Generation != 2 {
			t.Errorf("after an update of the spec: generation %d, error %v", updated.Generation, err)
		}
	})
	t.Run("a list arrives in pages that show one version [Z4]", func(t *testing.T) {
		_, maps := newConfigMaps(t)
		for i := range 5 {
			if _, err := maps.Create(t.Context(), newConfigMap(fmt.Sprintf("x%d", i)), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		first, err := maps.List(t.Context(), metav1.ListOptions{Limit: 3})
		if err != nil || len(first.Items) != 3 || first.Continue == "" {
			t.Fatalf("the first page: %v, error %v", first, err)
		}
		if err := maps.Delete(t.Context(), "x4", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		second, err := maps.List(t.Context(), metav1.ListOptions{Limit: 3, Continue: first.Continue})
		if err != nil || len(second.Items) != 2 || second.Items[1].Name != "x4" || second.ResourceVersion != first.ResourceVersion {
			t.Fatalf("the second page: %v, error %v", second, err)
		}
		if _, err := maps.List(t.Context(), metav1.ListOptions{Continue: first.Continue}); !apierrors.IsResourceExpired(err) {
			t.Errorf("a page that was read already: %v", err)
		}
	})
}

func TestServerWatches(t *testing.T) {
	t.Run("a watch continues from a version, sends bookmarks, and expires [Z4]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, maps := newConfigMaps(t)
			created, err := maps.Create(t.Context(), newConfigMap("x"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			events, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion, AllowWatchBookmarks: true})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, want := range []watch.EventType{watch.Deleted, watch.Bookmark} {
				if got := <-events.ResultChan(); got.Type != want {
					t.Fatalf("the event is %v, want %s", got, want)
				}
			}
			server.ExpireWatches()
			if got := <-events.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(got.Object)) {
				t.Errorf("the event is %v, want an error", got)
			}
			if _, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion}); !apierrors.IsResourceExpired(err) {
				t.Errorf("a watch from an expired version: %v", err)
			}
		})
	})
	t.Run("a watch can begin with the existing objects [Z4]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, maps := newConfigMaps(t)
			if _, err := maps.Create(t.Context(), newConfigMap("x"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			events, err := maps.Watch(t.Context(), metav1.ListOptions{
				SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			if got := <-events.ResultChan(); got.Type != watch.Added {
				t.Fatalf("the first event is %v", got)
			}
			got, ok := (<-events.ResultChan()).Object.(metav1.Object)
			if !ok || got.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("the second event is %v, want a bookmark", got)
			}
			if n := len(server.List(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})); n != 1 {
				t.Errorf("%d ConfigMaps", n)
			}
		})
	})
}
