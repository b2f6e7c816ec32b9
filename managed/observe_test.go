// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"net/http"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

func TestWatchInventoryTriesAgain(t *testing.T) {
	missing := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", configMaps.GroupResource(), "", "404 page not found", 0, true)
	for name, tc := range map[string]struct {
		refusal error
		pauses  []time.Duration // until the attempts that fail
	}{
		"a watch of a kind that is not served is tried again at growing intervals [F105]": {missing, []time.Duration{10 * time.Second, 20 * time.Second}},
		"a watch that the target forbids is tried again every ten minutes [F105]":         {forbidden, []time.Duration{10 * time.Minute, 10 * time.Minute}},
		"a watch of a kind that cannot be watched is tried again every ten minutes [F105]": {
			apierrors.NewMethodNotSupported(configMaps.GroupResource(), "list"), []time.Duration{10 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			isRefused := true
			w.cluster.metadata.(*metadatafake.FakeMetadataClient).PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return isRefused, nil, tc.refusal
			})
			w.item.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
			observe := func() {
				r := w.begin(true)
				r.TakeTriggers()
				r.Inventory.Entries = []apply.Entry{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "u-a"}}
				if err := r.RecordResult(t.Context(), r.Inventory, apply.Report{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			isWatched := func() bool { return contract.GetCondition(w.item.Status.Conditions, ConditionDriftDetection) == nil }
			for _, pause := range tc.pauses {
				if observe(); isWatched() {
					t.Fatal("the condition is missing")
				}
				w.expectHookResult(false, pause)
				w.clock.Step(pause)
				w.expectHookResult(true, 0)
			}
			isRefused = false
			if observe(); !isWatched() {
				t.Error("the watch is not tried again")
			}
			w.expectHookResult(false, 0)
		})
	}
}
