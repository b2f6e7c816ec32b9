// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

// dataChecker records data that reached the wrong item: a component of one item received it, but it belongs to another
// item.
type dataChecker struct {
	mu   sync.Mutex
	seen []string
}

func (s *dataChecker) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// byHand is the text that the spec appends to values. A run may read such a value before the value is corrected.
const byHand = " by hand"

// newChecker returns a component that checks all data that it receives in a run. Each value must be equal to the name
// of the item, because the item's configuration contains this name as its value.
func (s *dataChecker) newChecker(required string) stategraph.Resource {
	return stategraph.External(stategraph.ExternalSpec{Reconcile: func(ctx context.Context) error {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return err
		}
		pause := time.NewTimer(time.Duration(rand.IntN(3)) * time.Millisecond)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		config, err := stategraph.Config[settings](ctx)
		if err != nil {
			return err
		}
		c, err := stategraph.Client(ctx)
		if err != nil {
			return err
		}
		cm, err := stategraph.Output[*corev1.ConfigMap](ctx, required)
		if err != nil {
			return err
		}
		direct := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(cm), direct); err != nil {
			return err
		}
		for what, name := range map[string]string{"config": config.Value, "output": cm.Data["value"], "client": direct.Data["value"]} {
			if strings.TrimSuffix(name, byHand) != item.Name {
				s.add("%s: %s says %s", item.Name, what, name)
			}
		}
		return nil
	}})
}

var _ = Describe("Several items", func() {
	It("items share one graph, and a function never receives data of another item [Y31, Y32, Y33, Y34]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args = func(args *deployerlib.DeployerArgs) { args.Options.MaxConcurrentReconciles = 5 }
		s := &dataChecker{}
		w.start(build(stategraph.NewBuilder().
			Add("first", newConfigMap("first")).Add("spy", s.newChecker("first"), "first").
			Add("second", newConfigMap("second"), "spy").Add("agent", s.newChecker("second"), "second").
			Add("third", newSignedConfigMap("third"), "first")))
		names := newNames("item", 8)
		var working sync.WaitGroup
		for _, name := range names {
			w.begin(ctx, name, settings{Value: name})
			working.Go(func() {
				defer GinkgoRecover()
				Eventually(w.getValue(ctx, name+"-third")).WithTimeout(patience).Should(Equal(name))
				w.sign(ctx, name+"-third", true)
				w.waitUntilSucceeded(ctx, name)
				for range 2 { // after a third edit, the deployer would detect a fight and delay the correction
					w.updateValue(ctx, name+"-first", name+byHand)
					Eventually(w.getValue(ctx, name+"-first")).WithTimeout(patience).Should(Equal(name))
				}
				w.rerunSuccessfully(ctx, name)
			})
		}
		working.Wait()
		Expect(s.seen).To(BeEmpty())
		for _, name := range names {
			for _, part := range []string{"first", "second", "third"} {
				cm := &corev1.ConfigMap{}
				Expect(w.Client.Get(ctx, w.Key(name+"-"+part), cm)).To(Succeed())
				Expect(cm.Data).To(HaveKeyWithValue("value", name))
				Expect(cm.Labels).To(HaveKeyWithValue("state.deployerkit.dev/parent-name", name))
			}
		}
	}, SpecTimeout(5*time.Minute))

	It("a component that is not ready does not occupy the only worker [Y7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.args = func(args *deployerlib.DeployerArgs) { args.Options.MaxConcurrentReconciles = 1 }
		w.start(build(stategraph.NewBuilder().Add("part", newSignedConfigMap("part"))))
		names := newNames("item", 5)
		for _, name := range names {
			w.begin(ctx, name, settings{Value: name})
		}
		for _, name := range names {
			Eventually(w.getStates(ctx, name)).WithTimeout(patience).Should(Equal(map[string]string{"part": "Progressing"}))
		}
		w.sign(ctx, "item-4-part", true)
		w.waitUntilSucceeded(ctx, "item-4")
		Expect(w.ReadItem(ctx, "item-0")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Progressing))
	}, SpecTimeout(5*time.Minute))
})
