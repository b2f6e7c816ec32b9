// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// NewStartFunc returns a function for Subject.Start that runs a deployer made with deployerlib. The deployer runs in
// its own manager, without leader election and without a metrics endpoint. Durations that args does not set are short,
// as in package landscapertest.
func NewStartFunc(args func() deployerlib.DeployerArgs) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		scheme, err := landscapertest.Scheme()
		if err != nil {
			return err
		}
		a := args()
		setShortDurations(&a)
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return fmt.Errorf("create manager: %w", err)
		}
		if err := deployerlib.Add(logr.Discard(), mgr, nil, a); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// setShortDurations sets short values for the durations that the caller did not set.
func setShortDurations(a *deployerlib.DeployerArgs) {
	if a.Registerer == nil {
		a.Registerer = prometheus.NewRegistry()
	}
	if a.PollInterval == 0 {
		a.PollInterval = landscapertest.ShortPoll
	}
	if a.GracePeriod == 0 {
		a.GracePeriod = landscapertest.ShortGrace
	}
	if a.Backoff == (deployerlib.Backoff{}) {
		a.Backoff = deployerlib.Backoff{Min: landscapertest.ShortBackoffMin, Max: landscapertest.ShortBackoffMax}
	}
}
