// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// These environment variables change which seeds Run runs.
const (
	// SeedVariable contains the first seed to run, as a failed test prints it. By default, no other seed is run then.
	SeedVariable = "SIMULATION_SEED"
	// SeedsVariable contains the number of seeds to run.
	SeedsVariable = "SIMULATION_SEEDS"
)

// Scenario describes what is simulated: a deployer and the items that it deploys.
type Scenario struct {
	// Type is the type of the deploy items.
	Type lsv1alpha1.DeployItemType
	// New returns the deployer for a new process. It is called for each process, also after a restart. It must not use
	// state of an earlier process. If the deployer has clients of targets, their transport must be p.Transport.
	New func(p *Process) deployerlib.DeployerArgs
	// NewItem returns the item with the given name, as it is for its n-th job, from 1. Only its spec.configuration,
	// spec.target and spec.timeout are used. It must depend only on its arguments, and can use w.Random. By default, the
	// configuration contains only the number of the job.
	NewItem func(w *World, name string, n int) *lsv1alpha1.DeployItem

	// Items is the number of items. The default is 2.
	Items int
	// Jobs is the number of jobs of each item before its deletion. The default is 3.
	Jobs int
	// Replicas is the number of processes with leader election. The default is 2.
	Replicas int
	// Targets are the names of the Targets and of their clusters.
	Targets []string
	// Kinds are kinds that the servers serve in addition to DefaultKinds.
	Kinds []Kind
	// Faults is the time, from the beginning of a run, in which faults happen. The default is a minute.
	Faults time.Duration
	// MaxJob is how long a job may take. The default is 9 minutes, which is shorter than the default timeout of an item.
	MaxJob time.Duration
	// Seeds is the number of seeds that Run runs. The default is 100.
	Seeds int

	// Play runs during the whole run, for example as another client that changes objects. It must return when ctx is
	// done. It may be nil.
	Play func(ctx context.Context, w *World)
	// CheckWrite is called after each change in a server. It returns an error if the change violates an invariant of the
	// scenario. It must not call methods of servers. It may be nil.
	CheckWrite func(change Write) error
	// CheckDeployed is called again and again after the last job of an item has succeeded, before the item is deleted. It
	// returns an error as long as the targets do not contain what the item describes. If it still returns an error after
	// MaxJob, the run fails. It may be nil.
	CheckDeployed func(w *World, item *lsv1alpha1.DeployItem) error
	// CheckEnd is called when all items are deleted. It returns an error if something is left behind. It may be nil.
	CheckEnd func(w *World) error
}

// setDefaults sets the default values.
func (s *Scenario) setDefaults() {
	s.Items = cmp.Or(s.Items, 2)
	s.Jobs = cmp.Or(s.Jobs, 3)
	s.Replicas = cmp.Or(s.Replicas, 2)
	s.Faults = cmp.Or(s.Faults, time.Minute)
	s.MaxJob = cmp.Or(s.MaxJob, defaultMaxJob)
	s.Seeds = cmp.Or(s.Seeds, 100)
	if s.NewItem == nil {
		s.NewItem = newItem
	}
}

// Run runs a scenario with many seeds, each in a bubble of package synctest with a clock of its own. The seed decides
// all faults, delays and restarts. If a run violates an invariant, Run searches for the fewest faults with which this
// happens, and fails the test with the seed, these faults, and the end of the trace.
func Run(t *testing.T, s Scenario) {
	t.Helper()
	s.setDefaults()
	isolate(t)
	first, n := uint64(1), s.Seeds
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
		}
		first, n = seed, 1
	}
	if text := os.Getenv(SeedsVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", SeedsVariable, err)
		}
	}
	for i := range n {
		seed := first + uint64(i) //nolint:gosec // not negative
		w := runSeed(t, &s, newPlan(seed))
		if w.failure != nil {
			reportFailure(t, w, shrink(t, &s, w), n)
			return
		}
		if n == 1 {
			t.Logf("the trace of seed %d:\n%s", seed, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("seeds: %d", n)
}

// newWorld returns a world without servers.
func newWorld(t *testing.T, s *Scenario, p *plan) *World {
	return &World{
		t: t, scenario: s, seed: p.seed, plan: p, failed: make(chan struct{}),
		calls: calls{}, targets: map[string]*namedServer{}, items: map[types.UID]*itemHistory{}, late: map[types.UID]bool{}, deleted: map[string]int{},
	}
}

// runSeed runs a scenario once.
func runSeed(t *testing.T, s *Scenario, p *plan) *World {
	w := newWorld(t, s, p)
	seedGlobal(p.seed)
	synctest.Test(t, func(t *testing.T) {
		if err := w.run(t.Context()); err != nil {
			w.fail(err)
		}
	})
	return w
}

// maxRun is the longest time that a run may take on the clock of the bubble.
const maxRun = 4 * time.Hour

// run runs the scenario in a bubble. It returns when all processes have ended.
func (w *World) run(ctx context.Context) error {
	w.start, w.failed = time.Now(), make(chan struct{})
	if err := w.createServers(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	playing, stopPlaying := context.WithCancel(ctx)
	defer stopPlaying()
	if w.scenario.Play != nil {
		w.running.Go(func() { w.scenario.Play(playing, w) })
	}
	for i := range w.scenario.Replicas {
		w.running.Go(func() { w.runReplica(ctx, fmt.Sprintf("replica-%d", i+1)) })
	}
	done := make(chan error, 1)
	go func() {
		err := w.runItems(ctx)
		stopPlaying()
		if err == nil && w.scenario.CheckEnd != nil {
			err = w.scenario.CheckEnd(w)
		}
		if err == nil {
			err = w.checkQuiet(ctx)
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-w.failed:
	}
	cancel()
	w.running.Wait()
	w.sleep(10 * maxFaultDuration) // until all requests have arrived, because the clock of a bubble stops at the end of run
	return err
}

// createServers creates the servers with their first objects.
func (w *World) createServers() error {
	kinds := append(DefaultKinds(), w.scenario.Kinds...)
	for _, name := range append([]string{""}, w.scenario.Targets...) {
		server, err := NewServer(kinds...)
		if err != nil {
			return err
		}
		server.cluster = uint32(random(w.seed, name)) //nolint:gosec // any part of the random number
		named := &namedServer{Server: server, name: cmp.Or(name, "landscaper")}
		if name == "" {
			server.tracksFields = false // deployerlib writes items with merge patches
			w.landscaper = named
		} else {
			w.targets[getHost(name)] = named
		}
		for _, ns := range []string{namespace, "kube-system"} {
			obj := newObject(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
			obj.SetName(ns)
			r := server.find("", "namespaces")
			if _, err := server.create(r, &Request{}, obj); err != nil {
				return err
			}
		}
		server.observe = func(change Write) {
			change.Target = name
			w.checkWrite(change)
		}
	}
	return nil
}

// maxTrace is the number of lines of the trace that a failed test prints, unless it runs only one seed.
const maxTrace = 60

// reportFailure fails a test with a number of seeds.
func reportFailure(t *testing.T, first, smallest *World, seeds int) {
	t.Helper()
	text := &strings.Builder{}
	fmt.Fprintf(text, "seed %d: %v\n", first.seed, first.failure)
	fmt.Fprintf(text, "Run it again: %s=%d %s=1 go test -run '%s'\n", SeedVariable, first.seed, SeedsVariable, strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "'", "."))
	if smallest.failure.Error() != first.failure.Error() {
		fmt.Fprintf(text, "With fewer faults: %v\n", smallest.failure)
	}
	fmt.Fprintf(text, "%d of %d faults are needed:\n", len(smallest.faults), len(first.faults))
	for _, f := range smallest.faults {
		fmt.Fprintf(text, "  %s\n", f)
	}
	lines := smallest.trace
	if len(lines) > maxTrace && seeds > 1 {
		lines = lines[len(lines)-maxTrace:]
	}
	fmt.Fprintf(text, "The last %d lines of the trace:\n  %s", len(lines), strings.Join(lines, "\n  "))
	t.Error(text.String())
}
