// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/deployerkit/deployerkit/contract"
)

// useResourceVersions performs writes until the API server has assigned n more resource versions.
func (w *env) useResourceVersions(ctx context.Context, n int) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i := range n {
		group.Go(func() error {
			return w.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fmt.Sprintf("spent-%d", i)}})
		})
	}
	Expect(group.Wait()).To(Succeed())
}

var _ = Describe("Restored etcd", func() {
	// recovery is the time in which the watches of a deployer must reconnect and detect that the resource versions have
	// decreased.
	const recovery = 3 * time.Minute

	It("each item continues without a restart of the deployer after etcd was restored from a backup [F60]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		key := w.createAndStart(ctx, "item")
		w.finished(ctx, key)
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(cp.BackUpEtcd(backup)).To(Succeed())
		DeferCleanup(cp.StartEtcd)
		Eventually(func() error {
			_, err := w.Landscaper.Get(ctx, key)
			return err
		}).WithContext(ctx).Should(Succeed())
		w.useResourceVersions(ctx, 1000) // more versions than the API server assigns when it starts
		lost := w.RunAgain(ctx, key.Name)

		DeferCleanup(cp.StartAPIServer)
		Expect(cp.RestoreEtcd(backup)).To(Succeed())
		var job string
		Eventually(func() (err error) {
			job, err = w.Landscaper.Trigger(ctx, key)
			return err
		}).WithContext(ctx).Should(Succeed())
		di, err := w.Landscaper.WaitFor(withTimeout(ctx, recovery), key, func(di *lsv1alpha1.DeployItem) (bool, error) {
			return di.Status.JobIDFinished == job, nil
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(di.Status.Phase).To(Equal(phases.Succeeded))
		order, err := resourceversion.CompareResourceVersion(di.ResourceVersion, lost.ResourceVersion)
		Expect(err).NotTo(HaveOccurred())
		Expect(order).To(BeNumerically("<", 0), "the API server assigns the same versions again, so the version in the deployer's cache is newer")
		Expect(w.fake.CountCalls(key, contract.ActionReconcile)).To(Equal(3))
	}, SpecTimeout(10*time.Minute))
})
