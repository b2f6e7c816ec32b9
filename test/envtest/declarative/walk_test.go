// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
)

// walkFor is how long the actors walk. DEPLOYERKIT_WALK asks for more, such as 60s.
func walkFor() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DEPLOYERKIT_WALK")); err == nil {
		return d
	}
	return 6 * time.Second
}

const (
	walkItems    = 6
	walkChildren = 4
)

// walk is a world in which several actors do what comes to their mind.
type walk struct {
	*world

	mu     sync.Mutex
	wanted map[string]map[string]map[string]string // by item; missing: the item was deleted last
}

func childName(item string, i int) string { return fmt.Sprintf("%s-child-%d", item, i) }

// some are some children of an item.
func some(rng *rand.Rand, item string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for i := range walkChildren {
		if rng.IntN(3) > 0 {
			out[childName(item, i)] = data{"key": fmt.Sprint(rng.IntN(100)), "other": fmt.Sprint(rng.IntN(3))}
		}
	}
	return out
}

// owner changes, deletes and creates one item.
func (w *walk) owner(ctx context.Context, rng *rand.Rand, item string) {
	w.mu.Lock()
	wanted := w.wanted[item]
	w.mu.Unlock()
	if wanted != nil && rng.IntN(4) == 0 {
		w.delete(ctx, item)
		w.want(item, nil)
		return
	}
	next := some(rng, item)
	if wanted == nil {
		w.create(ctx, item, config(next))
	} else {
		Expect(w.ls.Update(ctx, w.key(item), config(next))).To(Succeed())
		_, err := w.ls.Trigger(ctx, w.key(item))
		Expect(err).NotTo(HaveOccurred())
	}
	w.want(item, next)
}

func (w *walk) want(item string, children map[string]map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if children == nil {
		delete(w.wanted, item)
		return
	}
	w.wanted[item] = children
}

// stranger does something to a child. That it went away, or changed meanwhile, is all the same to it.
func (w *walk) stranger(ctx context.Context, rng *rand.Rand, name string) {
	cm := &corev1.ConfigMap{}
	if err := w.client.Get(ctx, w.key(name), cm); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return
	}
	var err error
	by := client.FieldOwner(fmt.Sprint("stranger-", rng.IntN(3)))
	switch rng.IntN(5) {
	case 0:
		err = w.client.Delete(ctx, cm)
	case 1:
		cm.Labels = nil
		err = w.client.Update(ctx, cm, by)
	case 2:
		delete(cm.Data, "key")
		err = w.client.Update(ctx, cm, by)
	case 3:
		patch := fmt.Sprintf(`{"data":{"seen":"%d"}}`, rng.IntN(100))
		err = w.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)), by)
	default:
		if cm.Data == nil {
			cm.Data = data{}
		}
		cm.Data["key"] = "theirs"
		err = w.client.Update(ctx, cm, by)
	}
	if !apierrors.IsConflict(err) {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
}

// act runs an actor until the time is over.
func act(ctx context.Context, until time.Time, running *sync.WaitGroup, pause time.Duration, step func(context.Context)) {
	running.Go(func() {
		defer GinkgoRecover()
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for time.Now().Before(until) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				step(ctx)
			}
		}
	})
}

// atRest compares what is there with what the handler wants.
func (w *walk) atRest(g Gomega, ctx context.Context) { //nolint:revive // gomega wants itself first
	list := &corev1.ConfigMapList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(w.ns), client.HasLabels{ownership.LabelItem})).To(Succeed())
	there := map[string]corev1.ConfigMap{}
	for i := range list.Items {
		there[list.Items[i].Name] = list.Items[i]
	}
	for i := range walkItems {
		item := fmt.Sprint("item-", i)
		wanted, lives := w.wanted[item]
		seen := object{}
		for name, want := range wanted {
			g.Expect(there).To(HaveKey(name))
			for key, value := range want {
				g.Expect(there[name].Data).To(HaveKeyWithValue(key, value), name)
			}
			seen[name] = there[name].Data["seen"]
			delete(there, name)
		}
		if lives {
			di, err := w.ls.Get(ctx, w.key(item))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), item)
			g.Expect(contract.GetCondition(di.Status.Conditions, declarative.ConditionUnstableHandler)).To(BeNil())
			g.Expect(w.status(ctx, item)(g)).To(HaveKeyWithValue("seen", seen), item)
		}
	}
	g.Expect(there).To(BeEmpty(), "what no item wants any more")
}

var _ = Describe("a random walk of several actors", func() {
	It("ends where every item is as its handler wants it [R13, R16, R17, R27, Rx14]", func(ctx SpecContext) {
		w := &walk{world: newWorld(ctx, configMapKind), wanted: map[string]map[string]map[string]string{}}
		w.start(declarative.HandlerFunc(counting))
		until, seed := time.Now().Add(walkFor()), uint64(GinkgoRandomSeed()) //nolint:gosec // any seed will do
		var running sync.WaitGroup
		for i := range walkItems {
			item, rng := fmt.Sprint("item-", i), rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test
			act(ctx, until, &running, 200*time.Millisecond, func(ctx context.Context) { w.owner(ctx, rng, item) })
		}
		for i := range 3 {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i))) //nolint:gosec // a test
			act(ctx, until, &running, 30*time.Millisecond, func(ctx context.Context) {
				w.stranger(ctx, rng, childName(fmt.Sprint("item-", rng.IntN(walkItems)), rng.IntN(walkChildren)))
			})
		}
		running.Wait()
		for item := range w.wanted {
			w.again(ctx, item)
		}
		Eventually(w.atRest).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		w.settles(ctx)
		before := w.counter.Snapshot()
		Consistently(func() int { _, writes := w.spent(before); return writes }).WithTimeout(time.Second).Should(BeZero())
	}, SpecTimeout(5*time.Minute))
})
