// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// requestTimeout ends requests to an API server without a database.
const requestTimeout = 10 * time.Second

// world is a namespace with items, their objects and the lease of the replicas.
type world struct {
	client  client.WithWatch
	ls      *landscapertest.Landscaper
	ns      string
	seed    uint64
	items   []*item // each belongs to one actor until all actors have ended
	history *history
	foreign []client.Object // objects and items that are nobody's

	operations, jobs atomic.Int64
}

// newWorld makes a world without items.
func newWorld(ctx context.Context, seed uint64, count int) *world {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	cfg := rest.CopyConfig(cp.Config)
	w := &world{seed: seed}
	w.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ns := &corev1.Namespace{}
	ns.GenerateName = "soak-"
	Expect(w.client.Create(ctx, ns)).To(Succeed())
	w.ns = ns.Name
	w.ls = landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{Revision: contract.JobID, ManagedBy: "exec", DeployerType: true})
	Expect(w.ls.EnsureContext(ctx, w.ns)).To(Succeed())
	w.target(ctx)
	w.makeForeign(ctx)
	for i := range count {
		k := kinds[[]int{0, 1, 0, 1, 2}[i%5]]
		w.items = append(w.items, &item{name: fmt.Sprintf("%s-%03d", k.name, i), kind: k})
	}
	return w
}

// target creates the Target of all items: the same cluster.
func (w *world) target(ctx context.Context) {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	Expect(err).NotTo(HaveOccurred())
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(w.client.Create(ctx, target)).To(Succeed())
}

// makeForeign makes what the deployers have no business with: an object, one of another deployer, and an item.
func (w *world) makeForeign(ctx context.Context) {
	GinkgoHelper()
	plain, others := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	plain.Name, others.Name = "nobodys", "anothers"
	others.Labels = map[string]string{ownership.LabelItem: "00000000-0000-0000-0000-000000000001"}
	di := w.ls.Item(w.ns, "another", "example.com/another", map[string]any{"apiVersion": "example.com/v1", "kind": "Another"})
	di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	w.foreign = []client.Object{plain, others, di}
	for _, obj := range w.foreign {
		obj.SetNamespace(w.ns)
		Expect(w.client.Create(ctx, obj)).To(Succeed())
	}
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

// dice are random numbers of the seed, for one purpose.
func (w *world) dice(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, purpose)) //nolint:gosec // a failure must be repeatable
}

// insist repeats a request until the API server has answered it, however long that takes.
// ok are the answers that are none to complain about.
func (w *world) insist(ctx context.Context, request func(context.Context) error, ok ...func(error) bool) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		err := w.once(ctx, request, ok)
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

func (w *world) once(ctx context.Context, request func(context.Context) error, ok []func(error) bool) error {
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
