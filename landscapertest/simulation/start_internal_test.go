// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// counting is a deployer that only counts its calls of Reconcile.
type counting struct {
	deployerlib.Base

	calls atomic.Int64
}

func (d *counting) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	d.calls.Add(1)
	return nil
}

func (*counting) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// newQuietWorld returns a world with servers, without faults, replicas and a trace.
func newQuietWorld(t *testing.T) *World {
	t.Helper()
	w := newWorld(t, &Scenario{}, &plan{})
	w.start, w.calm = time.Now(), true
	w.requests, w.failure = maxRequests, errors.New("no trace") // a trace would grow
	if err := w.createServers(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestStartWithFinishedItems(t *testing.T) {
	t.Run("a process that starts with finished items only lists and watches, and calls no deployer [Sc3]", func(t *testing.T) {
		isolate(t)
		synctest.Test(t, func(t *testing.T) {
			w := newQuietWorld(t)
			run := func(name string, d deployerlib.Deployer, during func()) map[Request]int {
				ctx, cancel := context.WithCancel(t.Context())
				p, ended := w.newProcess(name, false), make(chan error, 1)
				go func() { ended <- w.runWithoutElection(ctx, p, d) }()
				during()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				w.sleep(10 * maxFaultDuration)
				return p.counts
			}
			run("first", &counting{}, func() { w.deployAll(t, 50) })
			d := &counting{}
			requests := run("second", d, func() { w.sleep(time.Hour) })
			for request := range requests {
				if isRead := request.Verb == "list" || request.Verb == "watch"; !isRead && request.Resource != "leases" && !isQuiet(request) {
					t.Errorf("want only lists and watches, got %s", request)
				}
			}
			if calls := d.calls.Load(); calls > 0 || len(requests) == 0 {
				t.Errorf("got %d calls of the deployer and %d kinds of requests", calls, len(requests))
			}
		})
	})
}

// runWithoutElection runs a deployer in a process without leader election.
func (w *World) runWithoutElection(ctx context.Context, p *Process, d deployerlib.Deployer) error {
	args := deployerlib.DeployerArgs{Type: "example.com/fake", Deployer: d, Registerer: prometheus.NewRegistry()}
	args.Options.SkipNameValidation, args.Options.EnableWarmup = new(true), new(false) // see fillCaches
	mgr, _, err := deployermain.NewManagers(deployermain.Options{
		Host: p.newConfig(w.landscaper), Logger: logr.Discard(), MetricsBindAddress: "0", HealthProbeBindAddress: "0", HistoryBindAddress: "0",
		Election: deployermain.Election{Disabled: true, Namespace: namespace},
	}, &args)
	if err != nil {
		return err
	}
	if err := deployerlib.Add(logr.Discard(), mgr, nil, args); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// deployAll creates items with a job, and waits until all jobs have ended.
func (w *World) deployAll(t *testing.T, n int) {
	t.Helper()
	c, err := w.NewClient("landscaper", "")
	if err != nil {
		t.Fatal(err)
	}
	ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Poll: time.Second, ManagedBy: "simulation", DeployerType: true})
	if err := ls.EnsureContext(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := ls.Deploy(t.Context(), ls.Item(namespace, fmt.Sprintf("item-%d", i), "example.com/fake", `{"apiVersion":"example.com/v1","kind":"Config"}`)); err != nil {
			t.Fatal(err)
		}
	}
}
