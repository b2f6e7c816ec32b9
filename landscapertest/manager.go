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

// These are the durations that StartManager uses if DeployerArgs does not set them. They are short, so that tests run
// quickly.
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

// WithLog sets the logger of the manager and of its deployers. By default, nothing is logged.
func WithLog(log logr.Logger) ManagerOption {
	return func(s *managerSetup) { s.log = log }
}

// WithDeployer adds another deployer to the manager.
func WithDeployer(args deployerlib.DeployerArgs) ManagerOption {
	return func(s *managerSetup) { s.add = append(s.add, args) }
}

// Manager is a running manager with the deployers under test.
type Manager struct {
	ctrl.Manager
	// Registry contains the metrics of those deployers that do not set a registry of their own.
	Registry *prometheus.Registry

	network *faultnet.Network
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
	once    sync.Once
	t       testing.TB
}

// StartManager runs a deployer in its own manager until the test ends. It returns when the caches of the manager are
// filled. Each manager has its own registry for metrics. Controller names need not be unique in the process. Durations
// that args does not set are short. The test fails if the manager cannot start, ends unexpectedly or does not stop.
func StartManager(t testing.TB, cfg *rest.Config, args deployerlib.DeployerArgs, options ...ManagerOption) *Manager {
	t.Helper()
	m := &Manager{Registry: prometheus.NewRegistry(), network: faultnet.NewNetwork(), done: make(chan struct{}), t: t}
	if err := m.create(cfg, args, options); err != nil {
		t.Fatalf("create manager: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.err = m.Start(ctx)
	}()
	t.Cleanup(m.Stop)
	if !m.waitForCaches(ctx) {
		t.Fatalf("the caches of the manager were not filled: %v", m.err)
	}
	return m
}

// create creates the manager and adds the deployers.
func (m *Manager) create(cfg *rest.Config, args deployerlib.DeployerArgs, options []ManagerOption) error {
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

// shorten sets short values for the durations that the caller did not set.
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

// waitForCaches waits until the caches are filled or the manager has ended.
func (m *Manager) waitForCaches(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return m.GetCache().WaitForCacheSync(ctx)
}

// Stop stops the manager, as SIGTERM does, and waits until it has ended. Further calls do nothing.
func (m *Manager) Stop() {
	m.t.Helper()
	m.once.Do(func() {
		if err := m.Shutdown(); err != nil {
			m.t.Errorf("manager: %v", err)
		}
	})
}

// Shutdown stops the manager as Stop does, and returns the error of the manager. It is for tests that expect an error.
func (m *Manager) Shutdown() error {
	m.cancel()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-m.done:
		return m.err
	case <-timer.C:
		return errors.New("the manager did not end within a minute")
	}
}

// Kill simulates SIGKILL: after Kill, no request of the manager reaches the API server. Kill does not wait for the end
// of the manager. Deployer calls that are still in progress are cancelled after the grace period.
func (m *Manager) Kill() {
	m.network.Kill()
	m.cancel()
	m.once.Do(func() {
		m.t.Cleanup(func() {
			if err := m.Shutdown(); err != nil {
				m.t.Log(fmt.Errorf("killed manager: %w", err))
			}
		})
	})
}

// Done returns a channel that is closed when the manager has ended.
func (m *Manager) Done() <-chan struct{} { return m.done }
