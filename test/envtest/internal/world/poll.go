// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

// ReadItem returns a function for Eventually that reads an item.
func (w *World) ReadItem(ctx context.Context, name string) func(Gomega) *lsv1alpha1.DeployItem {
	return func(g Gomega) *lsv1alpha1.DeployItem {
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		return di
	}
}

// Condition returns a function for Eventually that reads a condition of an item. The function returns nil if the
// item has no such condition.
func (w *World) Condition(ctx context.Context, name string, t lsv1alpha1.ConditionType) func(Gomega) *lsv1alpha1.Condition {
	return func(g Gomega) *lsv1alpha1.Condition {
		return contract.GetCondition(w.ReadItem(ctx, name)(g).Status.Conditions, t)
	}
}

// Data returns a function for Eventually that reads a ConfigMap. The function returns nil if the ConfigMap does not
// exist.
func (w *World) Data(ctx context.Context, name string) func(Gomega) *corev1.ConfigMap {
	return func(g Gomega) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		err := w.Client.Get(ctx, w.Key(name), cm)
		if apierrors.IsNotFound(err) {
			return nil
		}
		g.Expect(err).NotTo(HaveOccurred())
		return cm
	}
}

// Read reads a ConfigMap once. It returns nil if the ConfigMap does not exist.
func (w *World) Read(ctx context.Context, name string) *corev1.ConfigMap {
	w.t.Helper()
	return w.Data(ctx, name)(NewWithT(w.t))
}

// UpdateConfigMap changes a ConfigMap as a user would.
func (w *World) UpdateConfigMap(ctx context.Context, name string, change func(*corev1.ConfigMap)) {
	w.t.Helper()
	cm := w.Read(ctx, name)
	change(cm)
	w.must(w.Client.Update(ctx, cm, client.FieldOwner("kubectl-edit")))
}

// RemoveProviderStatus removes the provider status of an item, as may happen when a backup is restored. Stop the
// manager before you call RemoveProviderStatus.
func (w *World) RemoveProviderStatus(ctx context.Context, name string) {
	w.t.Helper()
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.must(w.Client.Status().Patch(ctx, di, client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerStatus":null}}`))))
}

// GetRequestCounts returns the numbers of reads and writes that the Counter has counted since the snapshot in `before`.
func (w *World) GetRequestCounts(before faultnet.Counts) (reads, writes int) {
	got := w.Counter.Snapshot().Since(before)
	return got.OnlyReads().Sum(), got.OnlyWrites().Sum()
}

// WaitUntilQuiet waits until the Counter has counted no requests for half a second.
func (w *World) WaitUntilQuiet(ctx context.Context) {
	w.t.Helper()
	last, since := w.Counter.Snapshot(), time.Now()
	NewWithT(w.t).Eventually(func() bool {
		now := w.Counter.Snapshot()
		if now.Since(last).Sum() > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	}).WithContext(ctx).WithTimeout(w.options.Patience).Should(BeTrue(), func() string { return w.Counter.Snapshot().String() })
}
