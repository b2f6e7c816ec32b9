// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// getSamples returns the values of all metrics of a registry by name and labels. The value of a histogram is its number
// of samples.
func getSamples(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := []string{}
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			out[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	const count = 30
	objects := []client.Object{}
	for i := range count {
		di := newItem(withJob("1"))
		di.Name, di.UID = fmt.Sprintf("item-%d", i), types.UID(fmt.Sprint(i))
		objects = append(objects, di)
	}
	reg := prometheus.NewRegistry()
	w := newTestEnv(t, objects, withHooks(), withArgs(func(args *deployerlib.DeployerArgs) { args.Registerer = reg }))
	w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errBoom), landscapertest.Panic("x"), landscapertest.ReturnWaitFor("x", 0))
	pass := func() {
		for i := range count {
			w.RunAttempt(t.Context(), types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("item-%d", i)})
		}
	}
	pass()
	first := getSamples(t, reg)
	pass()
	t.Run("no label contains the name of an item", func(t *testing.T) {
		for name := range first {
			if strings.Contains(name, "item-") || strings.Contains(name, ns+"/") {
				t.Errorf("%s", name)
			}
		}
		if len(first) > 70 {
			t.Errorf("%d series for %d items", len(first), count)
		}
	})
	t.Run("metrics count reconciles", func(t *testing.T) {
		for name, want := range map[string]float64{
			`deployerkit_passes_total{deployer_type=example.com/test,result=done}`:                               count - 3,
			`deployerkit_passes_total{deployer_type=example.com/test,result=error}`:                              2,
			`deployerkit_passes_total{deployer_type=example.com/test,result=waiting}`:                            1,
			`deployerkit_panics_total{deployer_type=example.com/test}`:                                           1,
			`deployerkit_errors_total{code=none,deployer_type=example.com/test}`:                                 2,
			`deployerkit_run_duration_seconds{action=reconcile,deployer_type=example.com/test,result=succeeded}`: count - 3,
			`deployerkit_retries_total{action=reconcile,deployer_type=example.com/test}`:                         2,
			`deployerkit_call_duration_seconds{action=reconcile,deployer_type=example.com/test}`:                 count,
			`deployerkit_api_calls_total{call=status,deployer_type=example.com/test}`:                            2 * count,
		} {
			if first[name] != want {
				t.Errorf("%s is %v, want %v", name, first[name], want)
			}
		}
	})
	t.Run("several deployers share a registry", func(t *testing.T) {
		newTestEnv(t, nil, withArgs(func(args *deployerlib.DeployerArgs) { args.Registerer = reg; args.Type = "example.com/second" }))
	})
	t.Run("a metric name that is already in use is an error", func(t *testing.T) {
		taken := prometheus.NewRegistry()
		taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "deployerkit_passes_total"}))
		_, err := deployerlib.NewEngine(deployerlib.DeployerArgs{Type: testType, Deployer: w.fake, Registerer: taken}, deployerlib.Access{Client: w.client})
		if err == nil {
			t.Error("no error")
		}
	})
}
