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

	"github.com/deployerkit/deployerkit/declarative"
)

const (
	walkTime  = 60 * time.Second
	walkItems = 6
	walkNames = 4 // of children per item
	// Times between two steps of an actor. Other suites run on the same machine.
	walkPace, walkRarely = 150 * time.Millisecond, time.Second
	// walkLife is how long a deployer lives before it is restarted.
	walkLife = 20 * time.Second
)

var _ = Describe("random walks", func() {
	It("end with a world that is what the handler wants, for every item", func(ctx SpecContext) {
		w := newWalk(ctx)
		AddReportEntry("seed", w.seed, ReportEntryVisibilityAlways)
		GinkgoWriter.Println("seed", w.seed)
		w.start(declarative.HandlerFunc(w.sync))

		steps, cancel := context.WithTimeout(ctx, walkTime)
		defer cancel()
		context.AfterFunc(steps, w.repair) // so that waits for an item can end
		group := &errgroup.Group{}
		w.actor(steps, group, 2*walkPace, w.editItem)
		w.actor(steps, group, 2*walkPace, w.editItem)
		w.actor(steps, group, walkPace, w.disturbChild)
		w.actor(steps, group, walkPace, w.disturbChild)
		w.actor(steps, group, walkRarely, w.squat)
		w.actor(steps, group, walkRarely, w.breakHandler)
		for restart := time.NewTicker(walkLife); steps.Err() == nil; {
			select {
			case <-restart.C:
				w.Manager.Stop()
				w.forgive()
				w.start(declarative.HandlerFunc(w.sync))
			case <-steps.Done():
			}
		}
		Expect(group.Wait()).To(Succeed(), "seed %d", w.seed)
		AddReportEntry("steps", w.steps.Load(), ReportEntryVisibilityAlways)
		Expect(w.steps.Load()).To(BeNumerically(">", 200), "the actors did act")

		By("at rest")
		Eventually(w.isAsWanted(ctx)).WithTimeout(2*patience).WithPolling(time.Second).Should(Succeed(), "seed %d", w.seed)
		w.AwaitQuiet(ctx)
		before := w.Counter.Snapshot()
		Consistently(func() int { _, writes := w.Spent(before); return writes }).WithTimeout(3*time.Second).Should(BeZero(), "seed %d", w.seed)
		Eventually(w.isAsWanted(ctx)).WithTimeout(patience).Should(Succeed(), "seed %d", w.seed)
	}, SpecTimeout(5*time.Minute))
})

// walk is a world in which several actors perform random actions.
type walk struct {
	*env

	seed   uint64
	actors uint64
	steps  atomic.Int64
	broken atomic.Pointer[string] // the item whose handler fails at the moment

	mu     sync.Mutex
	wanted map[string]map[string]data // what the items are configured for; an item that is absent is deleted
	busy   map[string]bool            // items that an actor works on
	hurt   map[string]int             // how often each child was disturbed during the life of the running deployer
	over   bool                       // the handler fails no more
}

func newWalk(ctx context.Context) *walk {
	GinkgoHelper()
	secrets := secretKind
	secrets.Update = declarative.Recreate
	return &walk{
		env: newEnv(ctx, configMapKind, secrets), seed: uint64(GinkgoRandomSeed()),
		wanted: map[string]map[string]data{}, busy: map[string]bool{}, hurt: map[string]int{},
	}
}

// sync returns a ConfigMap, which is changed, and a Secret, which is recreated, for each entry of the configuration.
func (w *walk) sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	if item := w.broken.Load(); item != nil && *item == req.Item.Name {
		return nil, errors.New("out of order")
	}
	config, err := declarative.Config[settings](req)
	if err != nil {
		return nil, err
	}
	response := declarative.Respond(object{"children": len(req.Children)})
	for _, name := range slices.Sorted(maps.Keys(config.Maps)) {
		response.Add(configMap(req.Name(name), config.Maps[name]), object{
			"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": req.Name(name)}, "stringData": config.Maps[name],
		})
	}
	return response.Response()
}

// actor calls act repeatedly until ctx is done. An error ends it, and the group returns it.
func (w *walk) actor(ctx context.Context, group *errgroup.Group, pace time.Duration, act func(context.Context, *rand.Rand) error) {
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

// item picks an item.
func (w *walk) item(random *rand.Rand) string { return fmt.Sprintf("item-%d", random.IntN(walkItems)) }

// configuration is a random set of children.
func (w *walk) configuration(random *rand.Rand) map[string]data {
	out := map[string]data{}
	for i := range walkNames {
		if random.IntN(3) > 0 {
			out[fmt.Sprintf("child-%d", i)] = data{"key": fmt.Sprint(random.IntN(3)), "other": fmt.Sprint(random.IntN(3))}
		}
	}
	return out
}

// editItem creates, changes or deletes an item that no other actor is using, as Landscaper does, with one job after the
// other.
func (w *walk) editItem(ctx context.Context, random *rand.Rand) error {
	name, wanted, remove := w.item(random), w.configuration(random), random.IntN(5) == 0
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
	if _, err := w.Landscaper.AwaitFinished(ctx, w.Key(name)); err != nil {
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

// breakHandler has the handler fail for an item, or for none.
func (w *walk) breakHandler(_ context.Context, random *rand.Rand) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken.Store(nil)
	if random.IntN(2) == 0 && !w.over {
		w.broken.Store(new(w.item(random)))
	}
	return nil
}

// repair has the handler fail no more.
func (w *walk) repair() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.broken.Store(nil)
}
