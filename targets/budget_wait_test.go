// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/targets"
)

// newLargeServer starts a server with responses that are so large that each of them needs a part of both budgets.
func newLargeServer(t *testing.T) *hostile.Server {
	t.Helper()
	return newHostileServer(t, hostile.When(hostile.Not(hostile.IsDiscovery), hostile.ManyValues(50_000)))
}

// fillBudget uses up the whole reading budget or decoding budget of the pool until the function `release` is called.
func fillBudget(t *testing.T, p *targets.Pool, budget string) (release func()) {
	t.Helper()
	c := getClient(t, p, newResolvedTarget("greedy", string(newLargeServer(t).Kubeconfig("t"))))
	ctx, end := targets.ReserveMemory(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Config().Host+"/api/v1/namespaces/default/configmaps/a", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if budget == "reading" {
		end()
		end = func() { _ = resp.Body.Close() }
	} else if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Body.Close() != nil {
		t.Fatal("cannot read the answer")
	}
	t.Cleanup(end)
	return end
}

// TestTargetsAreHealthyDuringWaits checks that a target stays healthy while its complete response waits for the
// budget.
func TestTargetsAreHealthyDuringWaits(t *testing.T) {
	limits := map[string]targets.Limits{"reading": {Reading: 350_000}, "decoding": {Decoding: 25_000_000}}
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	for budget, option := range map[string]string{"reading": "Reading", "decoding": "Decoding"} {
		waits := `deployerkit_target_budget_waits_total{` + budget + `}`
		wantNamed := func(t *testing.T, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "targets.Limits."+option) || strings.Contains(err.Error(), "no response") {
				t.Errorf("error %v, want one that names targets.Limits.%s", err, option)
			}
		}
		t.Run("a target counts as good while a response waits for memory for "+budget+" [F4]", func(t *testing.T) {
			clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			p := newPool(t, targets.PoolOptions{Clock: clk, Limits: limits[budget]})
			target := newResolvedTarget("patient", string(newLargeServer(t).Kubeconfig("t")))
			c := getClient(t, p, target)
			release := fillBudget(t, p, budget)
			for i := range 3 {
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error)
				go func() { done <- c.Get(ctx, key, &corev1.ConfigMap{}) }()
				waitUntil(t, func() bool { return getMetrics(t, p)[waits] == float64(i+1) })
				clk.SetTime(clk.Now().Add(10 * time.Second))
				if h := p.GetHealth(types.NamespacedName{Namespace: "garden", Name: "patient"}); h != targets.HealthGood {
					t.Errorf("the target counts as %s while its answer waits", h)
				}
				cancel(context.DeadlineExceeded)
				wantNamed(t, <-done)
			}
			release()
			if err := c.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil && !strings.Contains(err.Error(), "ConfigMap") {
				t.Errorf("when there is a share: %v", err)
			}
		})
		t.Run("a target can be used after a response did not get memory for "+budget+" [F4]", func(t *testing.T) {
			p := newPool(t, targets.PoolOptions{RequestTimeout: 2 * time.Second, Limits: limits[budget]})
			target := newResolvedTarget("patient", string(newLargeServer(t).Kubeconfig("t")))
			c := getClient(t, p, target)
			fillBudget(t, p, budget)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { wantNamed(t, c.Get(t.Context(), key, &corev1.ConfigMap{})) })
			}
			wg.Wait()
			if _, err := p.Get(t.Context(), target); err != nil {
				t.Errorf("the target counts as down: %v", err)
			}
		})
	}
	t.Run("a target does not count as unreachable while a discovery waits for memory for decoding [F4]", func(t *testing.T) {
		p := newPool(t, targets.PoolOptions{ConnectTimeout: testtime.ScaleTimeout(time.Second), GetTimeout: 200 * time.Millisecond, Limits: limits["decoding"]})
		release := fillBudget(t, p, "decoding")
		target := newResolvedTarget("patient", string(newHostileServer(t, hostile.AddGroups(900, true)).Kubeconfig("t")))
		connecting := func() bool {
			_, err := p.Get(t.Context(), target)
			return err != nil
		}
		waits := func() float64 { return getMetrics(t, p)[`deployerkit_target_budget_waits_total{decoding}`] }
		waitUntil(t, func() bool { return connecting() && waits() >= 2 }) // the second attempt follows the first without a pause
		if h := p.GetHealth(types.NamespacedName{Namespace: "garden", Name: "patient"}); h != targets.HealthUnknown {
			t.Errorf("the target counts as %s", h)
		}
		if n := getMetrics(t, p)[`deployerkit_target_client_events_total{unreachable}`]; n != 0 {
			t.Errorf("the target was taken down %.0f times", n)
		}
		release()
		waitUntil(t, func() bool { return !connecting() })
	})
}
