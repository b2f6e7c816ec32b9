// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// createIdentity creates the namespace kube-system of the target with a UID, and an object of an item.
func (w *testEnv) createIdentity(uid types.UID, owner ownership.Owner) {
	w.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("ns")
	object.SetName("a")
	owner.Mark(object)
	objects := []client.Object{object}
	if uid != "" {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}})
	}
	for _, object := range objects {
		if err := w.cluster.Create(w.Context(), object); err != nil {
			w.Fatal(err)
		}
	}
}

func TestCleanUpCluster(t *testing.T) {
	left := func(reason string, unreachable bool) remainingObjects {
		return remainingObjects{entries: newEntries("a"), reason: reason, unreachable: unreachable}
	}
	unserved := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "targets"}, "old", "404 page not found", 0, true)
	unidentified := left("the cluster cannot be identified, because its namespace kube-system cannot be read", true)
	for name, tc := range map[string]struct {
		uid    types.UID
		server string
		former apply.ClusterID
		fault  error
		want   remainingObjects
		gone   bool
	}{
		"of the inventory [F13]":                         {uid: "old", former: apply.ClusterID{UID: "old"}, gone: true},
		"that is another one now [F13]":                  {uid: "new", former: apply.ClusterID{UID: "old"}, want: remainingObjects{released: releasedByTarget}},
		"that is not identified [F13]":                   {former: apply.ClusterID{UID: "old"}, want: unidentified},
		"whose Target is gone [F13]":                     {fault: apierrors.NewNotFound(schema.GroupResource{Resource: "targets"}, "old"), want: left("the Target does not exist any more", true)},
		"whose Target is not served at the moment [F70]": {fault: unserved, want: left(unserved.Error(), false)},
		"that cannot be connected [F13]":                 {fault: errors.New("no route"), want: left("no route", false)},
		"whose API server identifies it, because its UID cannot be read any more [F108]": {server: "s", former: apply.ClusterID{UID: "old", Server: "s"}, gone: true},
		"whose API server identifies it, because its UID could not be read [F108]":       {uid: "new", server: "s", former: apply.ClusterID{Server: "s"}, gone: true},
		"whose Target leads to another API server [F108]":                                {server: "t", former: apply.ClusterID{Server: "s"}, want: unidentified},
		"whose Target leads to another API server without its UID [F108]":                {server: "t", former: apply.ClusterID{UID: "old", Server: "s"}, want: unidentified},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			owner := w.begin(false).Owner
			w.createIdentity(tc.uid, owner)
			w.cluster.server = tc.server
			clean := clusterCleaner{owner: owner, open: func(context.Context, string, string) (*Cluster, error) { return w.cluster, tc.fault }}
			got := clean.cleanUp(t.Context(), apply.Inventory{Cluster: &tc.former, Entries: newEntries("a")})
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(remainingObjects{})); diff != "" {
				t.Error(diff)
			}
			err := w.cluster.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{})
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("the object is gone: %t, want %t", !tc.gone, tc.gone)
			}
		})
	}
}

func TestFormerClustersAreTriedAgain(t *testing.T) {
	t.Run("the time until the next attempt doubles [F13]", func(t *testing.T) {
		w := newTestEnv(t)
		for pause := minCleanUpDelay; ; pause = min(2*pause, maxCleanUpDelay) {
			r := w.begin(true)
			r.TakeTriggers()
			r.Inventory.Former = []apply.Inventory{{Cluster: &apply.ClusterID{UID: "old", Target: "old"}, Entries: newEntries("a")}}
			if _, err := r.TryCleanUpFormer(t.Context(), apply.Options{}, nil); err != nil || len(r.Inventory.Former) != 1 {
				t.Fatalf("%v, left: %+v", err, r.Inventory.Former)
			}
			r.Finish()
			w.expectHookResult(false, pause)
			w.clock.Step(pause)
			w.expectHookResult(true, 0)
			if pause == maxCleanUpDelay {
				return
			}
		}
	})
}

// newUnverified is a former cluster that may be the current cluster.
func newUnverified(uid types.UID) apply.Inventory {
	return apply.Inventory{Cluster: &apply.ClusterID{UID: uid, Target: "old", Unverified: true}, Entries: withUID(newEntries("a"), "u")}
}

func TestUnverifiedFormerCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		current    apply.ClusterID
		entries    []apply.Entry // of the current cluster
		annotation string
		deleted    bool
		waited     time.Duration
		left       int
		events     []string // the reasons and parts of the messages
	}{
		"is reported, with its objects and a way out": {
			left: 1, events: []string{"ClusterUnknown", "ConfigMap ns/a", ReleaseAnnotation, "kube-system"},
		},
		"is reported if the current cluster contains another object of the same name": {
			entries: withUID(newEntries("a"), "v"), left: 1, events: []string{"ClusterUnknown"},
		},
		"is the current cluster if it contains the same object":   {entries: withUID(newEntries("a"), "u")},
		"is the current cluster if the UIDs of both are equal":    {current: apply.ClusterID{UID: "old"}},
		"is released by the annotation":                           {annotation: "true", events: []string{"Released", "1 objects in the cluster old of Target old"}},
		"delays a deletion":                                       {deleted: true, left: 1, events: []string{"ClusterUnknown"}},
		"ends a deletion after some time, and is reported":        {deleted: true, waited: unreadableGrace, events: []string{"Released", "ConfigMap ns/a"}},
		"whose UID differs is verified, and waits for its Target": {current: apply.ClusterID{UID: "new"}, deleted: true, waited: unreadableGrace, left: 1},
	} {
		t.Run(name+" [F108]", func(t *testing.T) {
			w := newTestEnv(t)
			w.item.Annotations = map[string]string{ReleaseAnnotation: tc.annotation}
			if tc.deleted {
				w.item.DeletionTimestamp = &metav1.Time{Time: startTime}
			}
			r := w.begin(false)
			r.Inventory = apply.Inventory{Cluster: &tc.current, Entries: tc.entries, Former: []apply.Inventory{newUnverified("old")}}
			r.item.getWaitTime("former cluster", startTime)
			w.clock.Step(tc.waited)
			if _, err := r.TryCleanUpFormer(t.Context(), apply.Options{}, nil); err != nil {
				t.Fatal(err)
			}
			if len(r.Inventory.Former) != tc.left {
				t.Errorf("want %d former clusters, got %+v", tc.left, r.Inventory.Former)
			}
			got := strings.Join(w.listEvents(), "\n")
			for _, text := range tc.events {
				if !strings.Contains(got, text) {
					t.Errorf("no event contains %q: %q", text, got)
				}
			}
			if len(tc.events) == 0 && got != "" {
				t.Errorf("want no event, got %q", got)
			}
		})
	}
}

// listEvents returns the events that were recorded so far.
func (w *testEnv) listEvents() []string {
	var out []string
	for {
		select {
		case event := <-w.recorder.Events:
			out = append(out, event)
		default:
			return out
		}
	}
}
