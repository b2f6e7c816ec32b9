// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// items creates the deploy items of a spec in a namespace. It acts as Landscaper for these items.
type items struct {
	*landscapertest.Landscaper

	namespace string
	spec      string // value of the label "spec" of the items
}

func newItems(r *release) *items {
	return &items{
		Landscaper: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true}),
		namespace:  r.namespace, spec: r.namespace,
	}
}

// createTarget creates a Target with the given configuration. If `config` is empty, the configuration is in a Secret
// and contains an administrator's kubeconfig.
func (i *items) createTarget(ctx context.Context, name, config string) {
	GinkgoHelper()
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: name}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	if config != "" {
		target.Spec.Configuration = &lsv1alpha1.AnyJSON{RawMessage: json.RawMessage(config)}
	} else {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "target-" + name}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()}}
		Expect(c.Create(ctx, secret)).To(Succeed())
		target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: secret.Name, Key: "kubeconfig"}
	}
	Expect(c.Create(ctx, target)).To(Succeed())
}

// newConfig returns the configuration of an item that deploys ConfigMaps with the given names. The item exports the
// value of the first ConfigMap.
func (i *items) newConfig(value string, names ...string) string {
	var entries []any
	for _, name := range names {
		entries = append(entries, map[string]any{"manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": i.namespace, "name": name}, "data": map[string]any{"k": value},
		}})
	}
	from := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": i.namespace, "name": names[0]}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries,
		"exports": map[string]any{"exports": []any{map[string]any{"key": "k", "jsonPath": "data.k", "fromResource": from}}},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

const mockConfig = `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","export":{"a":1}}`

// createItem creates an item and starts its first job. If target is empty, the item is for the mock deployer, otherwise
// for the manifest deployer.
func (i *items) createItem(ctx context.Context, name, target, config string) types.NamespacedName {
	GinkgoHelper()
	itemType := mock.Type
	if target != "" {
		itemType = manifest.Type
	}
	di := i.Item(i.namespace, name, itemType, config)
	di.Labels = map[string]string{"spec": i.spec}
	if target != "" {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: target}
	}
	Expect(i.Deploy(ctx, di)).To(Succeed())
	return client.ObjectKeyFromObject(di)
}

// waitUntilSucceeded waits until the current job of an item has succeeded.
func (i *items) waitUntilSucceeded(ctx context.Context, item types.NamespacedName) {
	GinkgoHelper()
	di, err := i.WaitUntilFinished(ctx, item)
	Expect(err).NotTo(HaveOccurred())
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
}

// updateItem changes the configuration of an item, starts a job and waits until the job has succeeded.
func (i *items) updateItem(ctx context.Context, item types.NamespacedName, config string) {
	GinkgoHelper()
	Expect(i.Update(ctx, item, config)).To(Succeed())
	job, err := i.Trigger(ctx, item)
	Expect(err).NotTo(HaveOccurred())
	Expect(i.WaitForJob(ctx, item, job)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded))
}

// value returns the value in a ConfigMap, or "gone" if the ConfigMap does not exist.
func (i *items) value(ctx context.Context, name string) string {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: i.namespace, Name: name}, cm); err != nil {
		return "gone"
	}
	return cm.Data["k"]
}

// runLifecycle deploys an item of the manifest deployer, edits its object and waits for the correction, changes the
// item, and deletes it.
func (i *items) runLifecycle(ctx context.Context, target string) {
	GinkgoHelper()
	item := i.createItem(ctx, target+"-item", target, i.newConfig("1", target+"-a", target+"-b"))
	i.waitUntilSucceeded(ctx, item)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"by hand"}}`))
	Expect(c.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: target + "-a"}}, patch)).To(Succeed())
	Eventually(ctx, i.value).WithArguments(ctx, target+"-a").WithTimeout(timeout).Should(Equal("1"))
	i.updateItem(ctx, item, i.newConfig("2", target+"-a"))
	Expect([]string{i.value(ctx, target+"-a"), i.value(ctx, target+"-b")}).To(Equal([]string{"2", "gone"}))
	Expect(i.Delete(ctx, item)).To(Succeed())
	Expect(i.value(ctx, target+"-a")).To(Equal("gone"))
}
