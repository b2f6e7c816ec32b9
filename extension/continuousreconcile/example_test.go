// SPDX-License-Identifier: Apache-2.0

package continuousreconcile_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// This hook makes a deployer apply its manifests again after a fixed period, to overwrite manual changes.
func ExampleContinuousReconcileExtensionSetup() {
	everyHour := func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
		return &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: time.Hour}}, nil
	}
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(
		continuousreconcile.ContinuousReconcileExtensionSetup(continuousreconcile.FromSpec(everyHour)))

	fmt.Println(len(hooks[extension.ShouldReconcileHook]), hooks.Validate())
	// Output: 1 <nil>
}

// This example shows the results of the hook in the hours after a run.
func ExampleExtension() {
	lastRun := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(lastRun)
	daily := continuousreconcile.Extension{
		Next: continuousreconcile.FromSpec(func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) {
			return &cr.ContinuousReconcileSpec{Cron: "0 6 * * *"}, nil
		}),
		Clock:     clock,
		MaxJitter: -1, // no jitter: exactly at six
	}
	hooks := extension.ReconcileExtensionHooks{}.RegisterHookSetup(daily.Setup())

	item := &lsv1alpha1.DeployItem{}
	item.Status.LastReconcileTime = &metav1.Time{Time: lastRun}
	for _, later := range []time.Duration{0, 19 * time.Hour, 20 * time.Hour} {
		clock.SetTime(lastRun.Add(later))
		result, err := hooks.ExecuteHooks(context.Background(), logr.Discard(), item, nil, extension.ShouldReconcileHook)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("after %s: run %t, ask again in %s\n", later, !result.AbortReconcile, result.ReconcileResult.RequeueAfter)
	}
	// Output:
	// after 0s: run false, ask again in 20h0m0s
	// after 19h0m0s: run false, ask again in 1h0m0s
	// after 20h0m0s: run true, ask again in 24h0m0s
}
