// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	walkTime  = 60 * time.Second
	walkItems = 6
	walkNames = 4 // number of possible children of an item
	// walkPace and walkRarely are the times between two steps of an actor. They leave other suites on the same machine
	// enough processor time.
	walkPace, walkRarely = 150 * time.Millisecond, time.Second
	// walkLife is the time after which the deployer is restarted.
	walkLife = 20 * time.Second
)

var _ = Describe("Random walks", func() {
	It("all children become what the handler returns after random changes, failures and restarts", world.Slow, func(ctx SpecContext) {
		w := newWalk(ctx)
		AddReportEntry("seed", w.seed, ReportEntryVisibilityAlways)
		GinkgoWriter.Println("seed", w.seed)
		w.start(declarative.HandlerFunc(w.sync))

		steps, cancel := context.WithTimeout(ctx, walkTime)
		defer cancel()
		context.AfterFunc(steps, w.restoreHandler) // the handler must succeed from now on, because actors wait for items
		group := &errgroup.Group{}
		w.startActor(steps, group, 2*walkPace, w.changeItem)
		w.startActor(steps, group, 2*walkPace, w.changeItem)
		w.startActor(steps, group, walkPace, w.changeChild)
		w.startActor(steps, group, walkPace, w.changeChild)
		w.startActor(steps, group, walkRarely, w.createConflictingConfigMap)
		w.startActor(steps, group, walkRarely, w.failHandler)
		for restart := time.NewTicker(walkLife); steps.Err() == nil; {
			select {
			case <-restart.C:
				w.Manager.Stop()
				w.resetChanges()
				w.start(declarative.HandlerFunc(w.sync))
			case <-steps.Done():
			}
		}
		Expect(group.Wait()).To(Succeed(), "seed %d", w.seed)
		AddReportEntry("steps", w.steps.Load(), ReportEntryVisibilityAlways)
		Expect(w.steps.Load()).To(BeNumerically(">", 200), "the actors did act")

		By("waiting until the deployer is idle")
		Eventually(w.isAsWanted(ctx)).WithTimeout(2*patience).WithPolling(time.Second).Should(Succeed(), "seed %d", w.seed)
		w.WaitUntilQuiet(ctx)
		before := w.Counter.Snapshot()
		Consistently(func() int { _, writes := w.GetRequestCounts(before); return writes }).WithTimeout(3*time.Second).Should(BeZero(), "seed %d", w.seed)
		Eventually(w.isAsWanted(ctx)).WithTimeout(patience).Should(Succeed(), "seed %d", w.seed)
	}, SpecTimeout(5*time.Minute))
})

// randomWalk is an environment in which several actors perform random actions at the same time.
type randomWalk struct {
	*env

	seed   uint64
	actors uint64
	steps  atomic.Int64
	broken atomic.Pointer[string] // the name of the item for which the handler currently fails

	mu     sync.Mutex
	wanted map[string]map[string]data // the desired children of each item; an item without an entry is deleted
	busy   map[string]bool            // names of the items that an actor is changing
	hurt   map[string]int             // number of disturbances of each child since the last start of the deployer
	over   bool                       // if true, the handler must not fail any more
}

func newWalk(ctx context.Context) *randomWalk {
	GinkgoHelper()
	configMaps, secrets := configMapKind, secretKind
	configMaps.Adopt = apply.AdoptionAlways // the deployer may then adopt the ConfigMaps of the method `createConflictingConfigMap`
	secrets.Update = declarative.StrategyRecreate
	return &randomWalk{
		env: newEnv(ctx, configMaps, secrets), seed: uint64(GinkgoRandomSeed()),
		wanted: map[string]map[string]data{}, busy: map[string]bool{}, hurt: map[string]int{},
	}
}

// sync is the handler. For each entry of the configuration, it returns a ConfigMap, whose strategy is Apply, and a
// Secret, whose strategy is Recreate.
func (w *randomWalk) sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	if item := w.broken.Load(); item != nil && *item == req.Item.Name {
		return nil, errors.New("out of order")
	}
	config, err := declarative.Config[settings](req)
	if err != nil {
		return nil, err
	}
	response := declarative.NewBuilder(object{"children": len(req.Children)})
	for _, name := range slices.Sorted(maps.Keys(config.Maps)) {
		response.Add(configMap(req.Name(name), config.Maps[name]), object{
			"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": req.Name(name)}, "stringData": config.Maps[name],
		})
	}
	return response.Build()
}

// startActor calls `act` repeatedly until ctx is done. If `act` returns an error, the actor ends, and the group returns
// this error.
func (w *randomWalk) startActor(ctx context.Context, group *errgroup.Group, pace time.Duration, act func(context.Context, *rand.Rand) error) {
	w.actors++
	random := rand.New(rand.NewPCG(w.seed, w.actors)) //nolint:gosec // a failure must be repeatable
	group.Go(func() error {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if err := act(context.WithoutCancel(ctx), random); err != nil {
				return err
			}
			w.steps.Add(1)
		}
	})
}

// item returns the name of a random item.
func (w *randomWalk) item(random *rand.Rand) string {
	return fmt.Sprintf("item-%d", random.IntN(walkItems))
}

// newConfiguration returns a random set of children.
func (w *randomWalk) newConfiguration(random *rand.Rand) map[string]data {
	out := map[string]data{}
	for i := range walkNames {
		if random.IntN(3) > 0 {
			out[fmt.Sprintf("child-%d", i)] = data{"key": fmt.Sprint(random.IntN(3)), "other": fmt.Sprint(random.IntN(3))}
		}
	}
	return out
}

// changeItem creates, changes or deletes an item that no other actor is changing. It acts like Landscaper, and waits
// for the end of a job before it starts the next job.
func (w *randomWalk) changeItem(ctx context.Context, random *rand.Rand) error {
	name, wanted, remove := w.item(random), w.newConfiguration(random), random.IntN(5) == 0
	w.mu.Lock()
	_, exists := w.wanted[name]
	if w.busy[name] {
		w.mu.Unlock()
		return nil
	}
	w.busy[name] = true
	if remove && exists {
		delete(w.wanted, name)
	} else {
		w.wanted[name] = wanted
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.busy, name)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if !exists {
		return w.createItem(ctx, name, wanted)
	}
	if _, err := w.Landscaper.WaitUntilFinished(ctx, w.Key(name)); err != nil {
		return err
	}
	if remove {
		return w.Landscaper.Delete(ctx, w.Key(name))
	}
	if err := w.Landscaper.Update(ctx, w.Key(name), config(wanted)); err != nil {
		return err
	}
	_, err := w.Landscaper.Trigger(ctx, w.Key(name))
	return err
}

// failHandler makes the handler fail for a random item, or for no item.
func (w *randomWalk) failHandler(_ context.Context, random *rand.Rand) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken.Store(nil)
	if random.IntN(2) == 0 && !w.over {
		w.broken.Store(new(w.item(random)))
	}
	return nil
}

// restoreHandler makes the handler succeed from now on.
func (w *randomWalk) restoreHandler() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.broken.Store(nil)
}
