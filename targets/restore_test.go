// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

// TestWatchOfRestoredTarget continues a watch after the target was restored from a backup. The target has not reached
// the version of the watch again yet.
func TestWatchOfRestoredTarget(t *testing.T) {
	t.Run("expires the version of a watch [F60]", func(t *testing.T) {
		api := newAPI(t, "t1")
		api.set(func() {
			api.handle = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/api/v1/configmaps" {
					return false
				}
				hostile.WriteJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "812"},
				})
				return true
			}
		})
		c := getClient(t, newPool(t, targets.PoolOptions{}), newResolvedTarget("target", api.newContent(t, "t1")))
		watcher, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
		if err != nil {
			t.Fatal(err)
		}
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		if _, err = watcher.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1790"}); !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v", err)
		}
	})
}
