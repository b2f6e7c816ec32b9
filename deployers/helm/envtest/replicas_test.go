// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// overlaps watches the records of a world and records moments at which two operations on a release were under way.
type overlaps struct {
	mu      sync.Mutex
	pending map[string]bool
	found   []string
}

// watchOverlaps starts to watch the records of a world.
func watchOverlaps(ctx context.Context, w *world) *overlaps {
	GinkgoHelper()
	events, err := w.Watch(ctx, &corev1.SecretList{}, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	o := &overlaps{pending: map[string]bool{}}
	go func() {
		for event := range events.ResultChan() {
			o.add(event)
		}
	}()
	return o
}

func (o *overlaps) add(event watch.Event) {
	secret, ok := event.Object.(*corev1.Secret)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pending, secret.Name)
	if event.Type != watch.Deleted && release.Status(secret.Labels["status"]).IsPending() {
		o.pending[secret.Name] = true
	}
	if len(o.pending) > 1 {
		o.found = append(o.found, fmt.Sprint(o.pending))
	}
}

// list returns what was recorded.
func (o *overlaps) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found
}

var _ = Describe("Two replicas", func() {
	It("never run two operations on a release, also if the leader is killed [Ex38]", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.manager.Stop()
		watched := watchOverlaps(ctx, w)
		elected := landscapertest.WithOptions(func(o *ctrl.Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "helm", w.namespace
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(8*time.Second), ptr.To(6*time.Second), ptr.To(500*time.Millisecond)
		})
		networks := []*faultnet.Network{faultnet.NewNetwork(), faultnet.NewNetwork()}
		first := w.startReplica(networks[0], elected)
		Eventually(first.Elected()).Should(BeClosed())
		second := w.startReplica(networks[1], elected)
		w.manager = second
		files := simple.With(charttest.Files{"templates/h.yaml": hook("slow", "pre-install", "")})
		w.create(ctx, "item", w.helmMode(files, nil, nil))
		Eventually(func() error { return w.Get(ctx, w.key("slow"), &corev1.Pod{}) }).Should(Succeed())
		networks[0].Kill()
		first.Kill()
		Eventually(w.revisions(ctx, "web")).Should(Equal([]string{"1 failed", "2 pending-install"}))
		w.endPod(ctx, "slow", corev1.PodSucceeded)
		Expect(w.finished(ctx, "item")).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 failed", "2 deployed"}))
		Expect(watched.list()).To(BeEmpty(), "operations at the same time")
	})

	It("detect that another client has started an operation at the same time [Ex11] [Ex38]", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.deploy(ctx, "item", w.helmMode(simple, nil, nil))).To(beSucceeded())
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "sh.helm.release.v1.web.v2", Labels: map[string]string{"owner": "helm", "name": "web", "status": "pending-upgrade", "version": "2"},
		}, Type: "helm.sh/release.v1"}
		w.fetched.before = func() { // between the list of the records and the new record
			w.fetched.before = nil
			Expect(w.Create(ctx, theirs)).To(Succeed())
		}
		await := w.trigger(ctx, "item", w.helmMode(simple, map[string]any{"color": "red"}, nil))
		Eventually(w.condition(ctx, "item", "Waiting")).Should(ContainSubstring("another client has an operation under way: revision 2 of release web"))
		Expect(w.read(ctx, "colors")).To(HaveKeyWithValue("color", "blue"))
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 deployed", "2 pending-upgrade"}))
		Expect(w.Delete(ctx, theirs)).To(Succeed())
		Expect(await()).To(beSucceeded())
		Expect(w.history(ctx, "web")).To(Equal([]string{"1 superseded", "2 deployed"}))
	})
})
