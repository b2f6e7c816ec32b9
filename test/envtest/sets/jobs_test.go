// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/targets"
)

var _ = Describe("Finished Jobs", func() {
	It("runs a Job that is deleted after it has finished only once, and keeps its checks and exports, also after a restart [F91]", func(ctx SpecContext) {
		w := newEnv(ctx)
		ref := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "namespace": w.Namespace, "name": "migrate"}
		w.Create(ctx, "item", map[string]any{
			"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
			"manifests": []any{map[string]any{"policy": "manage", "manifest": map[string]any{
				"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": w.Namespace, "name": "migrate"},
				"spec": map[string]any{"ttlSecondsAfterFinished": 5, "template": map[string]any{"spec": map[string]any{
					"restartPolicy": "Never", "containers": []any{map[string]any{"name": "a", "image": "registry.example.com/migrate:v1"}},
				}}},
			}}},
			"readinessChecks": map[string]any{"custom": []any{map[string]any{
				"name": "migrated", "resourceSelector": []any{ref},
				"requirements": []any{map[string]any{"jsonPath": ".status.succeeded", "operator": "==", "values": []any{map[string]any{"value": 1}}}},
			}}},
			"exports": map[string]any{"exports": []any{map[string]any{"key": "job.uid", "jsonPath": ".metadata.uid", "fromResource": ref}}},
		})
		jobs := func(g Gomega) []batchv1.Job {
			list := &batchv1.JobList{}
			g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
			return list.Items
		}
		exported := func() string {
			secret := &corev1.Secret{}
			Expect(w.Client.Get(ctx, w.Key("item-export"), secret)).To(Succeed())
			return string(secret.Data[lsv1alpha1.DataObjectSecretDataKey])
		}
		Expect(w.Finished(ctx, "item")).To(hasSucceeded())
		before := exported()
		Eventually(jobs).WithContext(ctx).WithTimeout(patience).Should(BeEmpty())
		created := w.Counter.Snapshot()
		for range 2 {
			Expect(w.RunAgain(ctx, "item")).To(hasSucceeded())
			w.Manager.Stop()
			w.Start(manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}, WrapTransport: w.Counter.Transport}))
			Expect(w.RunAgain(ctx, "item")).To(hasSucceeded())
		}
		Consistently(jobs).WithContext(ctx).WithTimeout(20 * time.Second).Should(BeEmpty())
		Expect(w.Counter.Snapshot().Since(created).OnlyWrites().Sum()).To(BeZero())
		Expect(exported()).To(Equal(before))
		Expect(before).To(ContainSubstring("uid"))
		w.requestDeletion(ctx, "item")
		w.waitUntilDeleted(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
