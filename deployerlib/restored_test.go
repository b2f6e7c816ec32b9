// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// TestInformersListAgainAfterRestore checks that a manager does not continue a watch from a resourceVersion that is
// newer than the resourceVersions of a restored API server.
func TestInformersListAgainAfterRestore(t *testing.T) {
	t.Run("informers list again [F60]", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hostile.WriteJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "812"},
			})
		}))
		t.Cleanup(server.Close)
		scheme, err := deployerlib.Scheme()
		if err != nil {
			t.Fatal(err)
		}
		mgr, err := manager.New(&rest.Config{Host: server.URL}, manager.Options{
			Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
			MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // several deployers may share a manager
			err := deployerlib.Add(logr.Discard(), mgr, nil, deployerlib.DeployerArgs{
				Name: "test", Type: "test", Deployer: landscapertest.NewFake(), Registerer: prometheus.NewRegistry(),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		resp, err := mgr.GetHTTPClient().Get(server.URL + "/apis/landscaper.gardener.cloud/v1alpha1/deployitems?watch=true&resourceVersion=1790") //nolint:noctx // a test server
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode != http.StatusGone {
			t.Errorf("the response to the watch is %s", resp.Status)
		}
	})
}
