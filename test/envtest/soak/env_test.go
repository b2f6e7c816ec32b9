// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// requestTimeout is the time limit of a request. It ends requests to an API server whose etcd does not respond.
const requestTimeout = 10 * time.Second

// env is the environment of the test: a world.World with many items, their objects, and the lease of the replicas.
type env struct {
	*world.World
	seed    uint64
	items   []*item // each item belongs to one actor until all actors have ended
	history *history
	foreign []client.Object // objects and items that belong to no deployer of the test

	operations, jobs atomic.Int64
}

// newEnv creates the environment. The items are not created in the cluster yet.
func newEnv(ctx context.Context, seed uint64, count int) *env {
	GinkgoHelper()
	options := landscapertest.LandscaperOptions{ManagedBy: "exec", DeployerType: true}
	w := &env{seed: seed, World: world.New(ctx, GinkgoTB(), cp, world.Options{Name: "soak", Landscaper: options})}
	w.makeForeign(ctx)
	for i := range count {
		k := kinds[[]int{0, 1, 2, 3, 1}[i%5]]
		w.items = append(w.items, &item{name: fmt.Sprintf("%s-%03d", k.name, i), kind: k})
	}
	return w
}

// makeForeign creates objects that the deployers must not change: a ConfigMap, a ConfigMap of another deployer, and an
// item.
func (w *env) makeForeign(ctx context.Context) {
	GinkgoHelper()
	plain, others := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	plain.Name, others.Name = "unowned", "anothers"
	others.Labels = map[string]string{ownership.LabelItem: "00000000-0000-0000-0000-000000000001"}
	di := w.Landscaper.Item(w.Namespace, "another", "example.com/another", map[string]any{"apiVersion": "example.com/v1", "kind": "Another"})
	di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	w.foreign = []client.Object{plain, others, di}
	for _, obj := range w.foreign {
		obj.SetNamespace(w.Namespace)
		Expect(w.Client.Create(ctx, obj)).To(Succeed())
	}
}

// newRandom returns random numbers for one purpose. The numbers depend on the seed and the purpose.
func (w *env) newRandom(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, purpose)) //nolint:gosec // a failure must be repeatable
}

// retryUntilSuccess repeats a request until it succeeds, no matter how long that takes. An error also counts as success
// if one of the functions in `ok` returns true for it.
func (w *env) retryUntilSuccess(ctx context.Context, request func(context.Context) error, ok ...func(error) bool) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		err := w.tryRequest(ctx, request, ok)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up: %w", err)
		case <-tick.C:
		}
	}
}

func (w *env) tryRequest(ctx context.Context, request func(context.Context) error, ok []func(error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := request(ctx)
	for _, is := range ok {
		if is(err) {
			return nil
		}
	}
	return err
}
