// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// retryPeriod is the interval at which a leader renews its lease.
	retryPeriod = 4 * time.Second
	// maxRestartDelay is the longest time until a process that has ended is started again.
	maxRestartDelay = 8 * time.Second
	// maxRestarts is the maximum number of restarts of all replicas. After that, no faults happen to processes.
	maxRestarts = 12
)

// getScheme returns the scheme of all clients.
var getScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		panic(fmt.Errorf("create scheme: %w", err)) // cannot happen, because the scheme does not depend on the input
	}
	return scheme
})

// runReplica runs one process after the other until ctx is done.
func (w *World) runReplica(ctx context.Context, name string) {
	for n := 1; ctx.Err() == nil; n++ {
		process := fmt.Sprintf("%s.%d", name, n)
		sleepUntil(ctx, randomDuration(w.seed, process+" start", time.Millisecond, maxRestartDelay))
		if ctx.Err() != nil {
			return
		}
		if err := w.runProcess(ctx, process); err != nil {
			w.fail(err)
			return
		}
		w.mu.Lock()
		w.restarts++
		w.calm = w.calm || w.restarts > maxRestarts
		w.mu.Unlock()
	}
}

// sleepUntil waits until a duration has passed or ctx is done.
func sleepUntil(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// runProcess runs a process until it is killed, has ended, or ctx is done. It returns an error if the process cannot be
// created.
//
// The manager stops only after its caches are filled, because a manager of controller-runtime that is stopped while it
// starts does not wait, but loops, and then no time passes in a bubble.
func (w *World) runProcess(ctx context.Context, name string) error {
	p, ended := w.newProcess(name, true), make(chan struct{})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopping := make(chan struct{})
	p.stop = sync.OnceFunc(func() { close(stopping) })
	mgr, err := w.newManager(p)
	if err != nil {
		cancel()
		return fmt.Errorf("create %s: %w", name, err)
	}
	w.record("%s starts", name)
	w.running.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-stopping:
		case <-p.ended:
		}
		select {
		case <-p.warm:
		case <-ended:
		}
	})
	w.running.Go(func() {
		select {
		case <-mgr.Elected():
			p.becomeLeader()
		case <-ended:
		}
	})
	w.running.Go(func() {
		defer close(ended)
		err := mgr.Start(running)
		w.record("%s ended: %v", name, err)
		p.kill() // the program ends when its manager ends
	})
	<-p.ended
	return nil
}

// fillCaches makes a manager fill its caches, also if the process is not the leader. It takes the place of the option
// EnableWarmup of controller-runtime, with which a controller waits for a lock while its caches are being filled. In a
// bubble, no time passes during such a wait.
func fillCaches(c cache.Cache) error {
	for _, obj := range []client.Object{&lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}, &lsv1alpha1.Context{}} {
		if _, err := c.GetInformer(context.Background(), obj, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", obj, err)
		}
	}
	return nil
}

// starter is a part of a manager that starts after the caches.
type starter struct{ process *Process }

// Start reports that the manager has started its caches.
func (s *starter) Start(ctx context.Context) error {
	sleepUntil(ctx, time.Second) // until the manager has started its other parts
	close(s.process.warm)
	return nil
}

// NeedLeaderElection returns false, because Start must be called in each process.
func (s *starter) NeedLeaderElection() bool { return false }

// newManager creates the manager of a process as a program of package deployermain does, but without servers.
func (w *World) newManager(p *Process) (manager.Manager, error) {
	args := w.scenario.New(p)
	args.Deployer = &recorder{Deployer: args.Deployer, process: p}
	if args.Registerer == nil {
		args.Registerer = prometheus.NewRegistry()
	}
	args.Options.SkipNameValidation = new(true)
	args.Options.EnableWarmup = new(false) // see fillCaches
	mgr, _, err := deployermain.NewManagers(deployermain.Options{
		Host: p.newConfig(w.landscaper), Logger: logr.Discard(), MetricsBindAddress: "0", HealthProbeBindAddress: "0", HistoryBindAddress: "0",
		Election: deployermain.Election{Namespace: namespace, RetryPeriod: retryPeriod},
	}, &args)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.Add(&starter{process: p}), fillCaches(mgr.GetCache())); err != nil {
		return nil, err
	}
	return mgr, deployerlib.Add(logr.Discard(), mgr, nil, args)
}
