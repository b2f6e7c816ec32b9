// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFetchSkipsDeletedItems tests an item whose last finalizer was removed, but which is still in the cache. The
// response to the removal has the old resourceVersion, so only the recorded response shows that the item no longer
// exists.
func TestFetchSkipsDeletedItems(t *testing.T) {
	terminating := func(uid types.UID, finalizers ...string) *lsv1alpha1.DeployItem {
		di := newFinishedItem()
		di.UID, di.DeletionTimestamp, di.Finalizers = uid, &metav1.Time{}, finalizers
		return di
	}
	cases := map[string]struct {
		reason string
		answer *lsv1alpha1.DeployItem
		cached *lsv1alpha1.DeployItem
		want   verdict
	}{
		"Gone": {
			reason: "the write of the library removed the last finalizer",
			answer: terminating("uid"), cached: terminating("uid", lsv1alpha1.LandscaperFinalizer), want: verdictDrop,
		},
		"HeldByOthers": {
			reason: "the item exists because of a finalizer of another controller, so its events count",
			answer: terminating("uid", "example.com/foreign"), cached: terminating("uid", "example.com/foreign"), want: verdictProceed,
		},
		"MadeAnew": {
			reason: "another item with the same name exists",
			answer: terminating("uid"), cached: terminating("new"), want: verdictProceed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newOfflineReconciler(t, tc.cached, nil)
			key := client.ObjectKeyFromObject(tc.cached)
			a := &attempt{key: key, state: r.tracker.Get(key)}
			a.state.RecordWrite(tc.answer)
			if got, err := r.fetch(t.Context(), a); err != nil || got != tc.want {
				t.Errorf("%s: got %s, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}
