// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
)

// Short durations for tests. StartManager uses them where DeployerArgs sets none.
const (
	ShortPoll       = 50 * time.Millisecond
	ShortBackoffMin = 20 * time.Millisecond
	ShortBackoffMax = 500 * time.Millisecond
	ShortGrace      = 2 * time.Second
)

// ManagerOption is an option of StartManager.
type ManagerOption func(*managerSetup)

type managerSetup struct {
	options ctrl.Options
	log     logr.Logger
	add     []deployerlib.DeployerArgs
}

// WithOptions changes the options of the manager before it is created.
func WithOptions(change func(*ctrl.Options)) ManagerOption {
	return func(s *managerSetup) { change(&s.options) }
}

// WithLog sets the logger of the manager and the deployers. By default nothing is logged.
func WithLog(log logr.Logger) ManagerOption {
	return func(s *managerSetup) { s.log = log }
}

// WithDeployer adds another deployer to the same manager.
func WithDeployer(args deployerlib.DeployerArgs) ManagerOption {
	return func(s *managerSetup) { s.add = append(s.add, args) }
}

// Manager is a running manager with deployers.
type Manager struct {
	ctrl.Manager
	// Registry has the metrics of the deployers that have no registry of their own.
	Registry *prometheus.Registry

	network *faultnet.Network
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error
	once    sync.Once
	t       testing.TB
}

// StartManager runs a deployer in a manager of its own until the test ends, and waits until its caches are filled.
// Metrics are registered with a registry of the manager, names need not be unique in the process, and durations that
// args does not set are short. The test fails if the manager cannot start, ends unexpectedly or does not stop.
func StartManager(t testing.TB, cfg *rest.Config, args deployerlib.DeployerArgs, options ...ManagerOption) *Manager {
	t.Helper()
	m := &Manager{Registry: prometheus.NewRegistry(), network: faultnet.NewNetwork(), ended: make(chan struct{}), t: t}
	if err := m.make(cfg, args, options); err != nil {
		t.Fatalf("create manager: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	m.cancel = cancel
	go func() {
		defer close(m.ended)
		m.err = m.Start(ctx)
	}()
	t.Cleanup(m.Stop)
	if !m.awaitCaches(ctx) {
		t.Fatalf("the caches of the manager were not filled: %v", m.err)
	}
	return m
}

// make creates the manager and adds the deployers.
func (m *Manager) make(cfg *rest.Config, args deployerlib.DeployerArgs, options []ManagerOption) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	setup := managerSetup{log: logr.Discard(), add: []deployerlib.DeployerArgs{args}, options: ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}}
	for _, option := range options {
		option(&setup)
	}
	if setup.options.Logger.GetSink() == nil {
		setup.options.Logger = setup.log
	}
	if m.Manager, err = ctrl.NewManager(m.network.Wrap(cfg), setup.options); err != nil {
		return err
	}
	for _, a := range setup.add {
		m.shorten(&a)
		if err := deployerlib.Add(setup.log, m.Manager, nil, a); err != nil {
			return err
		}
	}
	return nil
}

// shorten sets short durations where the arguments set none.
func (m *Manager) shorten(args *deployerlib.DeployerArgs) {
	if args.Registerer == nil {
		args.Registerer = m.Registry
	}
	if args.PollInterval == 0 {
		args.PollInterval = ShortPoll
	}
	if args.GracePeriod == 0 {
		args.GracePeriod = ShortGrace
	}
	if args.Backoff == (deployerlib.Backoff{}) {
		args.Backoff = deployerlib.Backoff{Min: ShortBackoffMin, Max: ShortBackoffMax}
	}
}

// awaitCaches waits until the caches are filled or the manager has ended.
func (m *Manager) awaitCaches(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return m.GetCache().WaitForCacheSync(ctx)
}

// Stop stops the manager as SIGTERM does and waits until it has ended. Further calls do nothing.
func (m *Manager) Stop() {
	m.t.Helper()
	m.once.Do(func() {
		if err := m.End(); err != nil {
			m.t.Errorf("manager: %v", err)
		}
	})
}

// End is Stop for tests that expect an error, which it returns.
func (m *Manager) End() error {
	m.cancel()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-m.ended:
		return m.err
	case <-timer.C:
		return errors.New("did not end within a minute")
	}
}

// Kill ends the manager as SIGKILL ends a process: from then on none of its requests reaches the API server. It does
// not wait. Calls of deployers that still run are cancelled after the grace period.
func (m *Manager) Kill() {
	m.network.Kill()
	m.cancel()
	m.once.Do(func() {
		m.t.Cleanup(func() {
			if err := m.End(); err != nil {
				m.t.Log(fmt.Errorf("killed manager: %w", err))
			}
		})
	})
}

// Ended returns a channel that is closed when the manager has ended.
func (m *Manager) Ended() <-chan struct{} { return m.ended }
