// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

func item(name string) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.UID = "ns", name, types.UID("uid of "+name)
	return di
}

func TestChangesWaitForTheInterval(t *testing.T) {
	began := time.Unix(1000, 0)
	m := &memory{}
	if !m.nextCall(time.Second).IsZero() {
		t.Error("the first call has to wait")
	}
	m.recordStart(began)
	if got := m.nextCall(time.Second).Sub(began); got != time.Second {
		t.Errorf("after a call: %s, want 1s", got)
	}
	m.setDelay(2 * time.Second)
	if got := m.nextCall(time.Second).Sub(began); got != 2*time.Second {
		t.Errorf("after an unstable result: %s, want 2s", got)
	}
	m.setDelay(0)
	if got := m.nextCall(time.Second).Sub(began); got != time.Second {
		t.Errorf("after a stable result: %s, want 1s", got)
	}
}

func TestItemMetrics(t *testing.T) {
	m := &memory{}
	m.countError()
	m.countError()
	failed := map[types.NamespacedName]uint64{{Namespace: "ns", Name: "a"}: m.errorCount(), {Namespace: "ns", Name: "b"}: 0}
	if diff := cmp.Diff([]string{"ns/a 2"}, itemErrorsIn(t, newMetrics(nil, countNoWatches, func() map[types.NamespacedName]uint64 { return failed }))); diff != "" {
		t.Errorf("[R21] (-want +got):\n%s", diff)
	}
	if got := itemErrorsIn(t, newMetrics(nil, countNoWatches, nil)); got != nil {
		t.Errorf("[Rx11] metrics that are not enabled: %v", got)
	}
}

func TestMetricsEndWithTheManager(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for range 2 {
		ctx, end := context.WithCancel(t.Context())
		m := newMetrics(registry, countNoWatches, func() map[types.NamespacedName]uint64 { return nil })
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		waitUntil(t, "not registered", func() bool {
			families, err := registry.Gather()
			return err == nil && len(families) > 0
		})
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if families, err := registry.Gather(); err != nil || len(families) > 0 {
			t.Errorf("left: %v, %v", families, err)
		}
	}
}

func countNoWatches() int { return 0 }

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatal(what)
	}
}

// itemErrorsIn returns the metrics that exist for each item, one line per metric.
func itemErrorsIn(t *testing.T, m *metrics) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, one := range m.all {
		if err := registry.Register(one); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		if family.GetName() != "deployerkit_declarative_item_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			values := []string{}
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			slices.Sort(values)
			slices.Reverse(values)
			out = append(out, fmt.Sprintf("%s %g", strings.Join(values, "/"), metric.GetCounter().GetValue()))
		}
	}
	return out
}

// TestRequestAndStartOfRunAreAtomic checks that recording a request and making the request are one atomic step for a
// run that begins at the same time.
func TestRequestAndStartOfRunAreAtomic(t *testing.T) {
	m := &memory{}
	together := func() {
		if m.requestLock.TryLock() {
			m.requestLock.Unlock()
			t.Error("[R27] the request and its record may be taken by different runs")
		}
	}
	m.requestRun(together)
	if !m.takeRequest(together) || m.takeRequest(together) {
		t.Error("a request is not taken exactly once")
	}
}
