// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/faultnet"
)

// TestMonitoring runs the programs.
func TestMonitoring(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	w := newWorld(t)
	t.Run("under load", func(t *testing.T) {
		t.Parallel()
		testLoad(t, w)
	})
	for _, alert := range readAlerts(t) {
		t.Run(alert.Alert+" fires when its condition occurs in a program [M2]", func(t *testing.T) {
			t.Parallel()
			cause := causes[alert.Alert]
			if cause == nil {
				t.Fatalf("nothing causes %s", alert.Alert)
			}
			s := w.newScene(t, strings.ToLower(alert.Alert))
			act := cause(s)
			s.record(minScrapes, act)
			for deadline := time.Now().Add(patience); !newReplay(t, &s.recording).fires(newAlert(t, alert)); s.record(5, act) {
				if time.Now().After(deadline) {
					r := newReplay(t, &s.recording)
					for _, query := range listOperands(mustParse(t, alert.Expr)) {
						t.Logf("%s: %v", query, r.evaluate(query))
					}
					t.Fatalf("%s does not fire", alert.Alert)
				}
			}
		})
	}
}

// testLoad runs both programs under load, and evaluates all queries and alerts on their metrics.
func testLoad(t *testing.T, w *world) {
	mock, manifest := w.newScene(t, "mock"), w.newScene(t, "manifest")
	// The API server fails once.
	network := faultnet.Start(t, faultnet.Scenario{Rules: []faultnet.Rule{
		{Match: faultnet.Match{Verb: "patch", Resource: "deployitems"}, Fault: faultnet.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
	}})
	mock.writeKubeconfig(network.Proxy(w.cp.Config))
	mock.start(mockProgram)
	manifest.createTarget("cluster", w.cp.Kubeconfig())
	manifest.start(manifestProgram, "--allow-private-hosts")
	drifting := manifest.deployManifest("cluster")
	manifest.waitForPhase(drifting, lsv1alpha1.DeployItemPhases.Succeeded)
	for i := range minScrapes {
		for range 3 {
			mock.deployMock("Succeeded")
		}
		if i == 5 {
			mock.deployMock("Failed")
			manifest.setColor(drifting, "red")
			must(t, w.client.Delete(t.Context(), mock.deployMock("Succeeded")))
		}
		manifest.deployManifest("cluster")
		mock.record(1, nil)
		manifest.record(1, nil)
	}
	r := newReplay(t, &mock.recording, &manifest.recording)
	t.Run("no label contains the name of an item, a target or a namespace [M7]", func(t *testing.T) { checkLabels(t, mock, manifest) })
	t.Run("each query of the dashboard returns data [M1, O58]", func(t *testing.T) { checkDashboard(t, r) })
	t.Run("each query of the alerts returns data [M1, O58]", func(t *testing.T) {
		for _, alert := range readAlerts(t) {
			for _, query := range listOperands(mustParse(t, alert.Expr)) {
				checkData(t, r, query)
			}
		}
	})
	t.Run("no alert fires for programs without faults [M3]", func(t *testing.T) {
		for _, alert := range readAlerts(t) {
			if r.fires(newAlert(t, alert)) {
				t.Errorf("%s fires", alert.Alert)
			}
		}
	})
	t.Run("the guide describes exactly the metrics that the programs export [M4]", func(t *testing.T) {
		checkGuide(t, &mock.recording, &manifest.recording)
	})
}

// variables are the values of the variables of the dashboard.
var variables = strings.NewReplacer("$job", job, "$deployer_type", ".*", "$__rate_interval", "1h")

func checkDashboard(t *testing.T, r *replay) {
	t.Helper()
	queries := 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries++
			checkData(t, r, variables.Replace(target.Expr))
		}
	}
	if queries < 20 {
		t.Errorf("there are %d queries", queries)
	}
}

// checkData checks that a query returns at least one number.
func checkData(t *testing.T, r *replay, query string) {
	t.Helper()
	for _, s := range r.evaluate(query) {
		if !math.IsNaN(s.F) {
			return
		}
	}
	t.Errorf("no data: %s", query)
}

// checkLabels checks that the number of series does not depend on the number of items.
func checkLabels(t *testing.T, scenes ...*scene) {
	t.Helper()
	for _, s := range scenes {
		for _, one := range s.recording.scrapes[minScrapes-1] {
			for name, value := range one.series.Map() {
				if strings.HasPrefix(one.series.Get("__name__"), "deployerkit_") && (strings.Contains(value, "item-") || value == "cluster" || value == s.namespace) {
					t.Errorf("%s: %s", name, one.series)
				}
			}
		}
	}
}
