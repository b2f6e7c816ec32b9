// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/contract"
	manifestdeployer "github.com/deployerkit/deployerkit/examples/manifest-deployer"
	"github.com/deployerkit/deployerkit/faultnet"
)

// demo matches the namespace of the examples. A spec replaces this namespace with the namespace of its world.
var demo = regexp.MustCompile(`\bdemo\b`)

// readExample reads a deploy item from examples/manifest-deployer, and changes it for the namespace of the world.
func (w *env) readExample(name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	files, err := fs.Glob(manifestdeployer.Files, "*.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		body, err := manifestdeployer.Files.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for doc := range bytes.SplitSeq(body, []byte("\n---\n")) {
			di := &lsv1alpha1.DeployItem{}
			Expect(yaml.UnmarshalStrict(demo.ReplaceAll(doc, []byte(w.Namespace)), di)).To(Succeed(), file)
			if di.Name == name {
				di.Spec.Type = w.Type
				return di
			}
		}
	}
	Fail("there is no example " + name)
	return nil
}

// createExample creates the item of an example and requests its first run, without waiting.
func (w *env) createExample(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(w.Landscaper.Deploy(ctx, w.readExample(name))).To(Succeed())
}

// run deploys an example and waits until its first run has ended.
func (w *env) run(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	w.createExample(ctx, name)
	return w.Finished(ctx, name)
}

// runSuccessfully deploys an example and requires that its first run succeeds.
func (w *env) runSuccessfully(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di := w.run(ctx, name)
	Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
	return di
}

// remove deletes an item and waits until it no longer exists.
func (w *env) remove(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(w.Landscaper.Delete(ctx, w.Key(name))).To(Succeed())
}

// createUnownedConfigMap creates a ConfigMap that belongs to no item.
func (w *env) createUnownedConfigMap(ctx context.Context, name string, data map[string]string) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Data: data}
	Expect(w.Client.Create(ctx, cm, client.FieldOwner("another-client"))).To(Succeed())
}

// addFinalizer adds a finalizer to a ConfigMap. The method `removeFinalizer` removes the finalizer.
func (w *env) addFinalizer(ctx context.Context, name string) {
	GinkgoHelper()
	w.UpdateConfigMap(ctx, name, func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/held"} })
}

func (w *env) removeFinalizer(ctx context.Context, name string) {
	GinkgoHelper()
	w.UpdateConfigMap(ctx, name, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
}

// hasObject reports whether an object exists in the namespace of the world.
func (w *env) hasObject(ctx context.Context, obj client.Object, name string) bool {
	GinkgoHelper()
	err := w.Client.Get(ctx, w.Key(name), obj)
	Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	return err == nil
}

// item returns a function for Eventually that reads an item.
func (w *env) item(ctx context.Context, name string) func(Gomega) *lsv1alpha1.DeployItem {
	return func(g Gomega) *lsv1alpha1.DeployItem {
		di, err := w.Landscaper.Get(ctx, w.Key(name))
		g.Expect(err).NotTo(HaveOccurred())
		return di
	}
}

// getWaitingReason returns the reason why an item waits, or "" if it does not wait.
func getWaitingReason(di *lsv1alpha1.DeployItem) string {
	if condition := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); condition != nil {
		return condition.Message
	}
	return ""
}

// events returns a function for Eventually that reads the reasons and messages of the events of an item.
func (w *env) events(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &corev1.EventList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		var out []string
		for i := range list.Items {
			if one := &list.Items[i]; one.InvolvedObject.Name == name && one.InvolvedObject.Kind == "DeployItem" {
				out = append(out, one.Reason+": "+one.Message)
			}
		}
		return out
	}
}

// record starts to record the resources of the requests to the target that have the given verb. The returned function
// returns these resources in the order of the requests. Successive requests for the same resource count once.
func (w *env) record(verb string) func() []string {
	var mu sync.Mutex
	var order []string
	w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Verb == verb {
			order = append(order, r.Resource)
		}
		return false
	}, nil))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(order)
	}
}

// readExport reads the values in the export Secret of an item. It returns nil if the item has no such Secret.
func (w *env) readExport(ctx context.Context, di *lsv1alpha1.DeployItem) map[string]any {
	GinkgoHelper()
	if di.Status.ExportReference == nil {
		return nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: di.Status.ExportReference.Namespace, Name: di.Status.ExportReference.Name}
	Expect(w.Client.Get(ctx, key, secret)).To(Succeed())
	values := map[string]any{}
	Expect(yaml.Unmarshal(secret.Data["config"], &values)).To(Succeed())
	return values
}

// replaceText returns the configuration of an example in which one text is replaced by another text.
func (w *env) replaceText(name, old, text string) map[string]any {
	GinkgoHelper()
	body, err := yaml.JSONToYAML(w.readExample(name).Spec.Configuration.Raw)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(body)).To(ContainSubstring(old))
	out := map[string]any{}
	Expect(yaml.Unmarshal(bytes.ReplaceAll(body, []byte(old), []byte(text)), &out)).To(Succeed())
	return out
}

// managedNames returns the names in status.providerStatus.managedResources.
func managedNames(di *lsv1alpha1.DeployItem) []string {
	GinkgoHelper()
	var status manifestv1alpha2.ProviderStatus
	if di.Status.ProviderStatus != nil {
		Expect(json.Unmarshal(di.Status.ProviderStatus.Raw, &status)).To(Succeed())
	}
	var names []string
	for _, managed := range status.ManagedResources {
		names = append(names, managed.Resource.Name)
	}
	return names
}

// removeField returns a configuration without one of its fields.
func removeField(config []byte, field string) map[string]any {
	GinkgoHelper()
	out := map[string]any{}
	Expect(yaml.Unmarshal(config, &out)).To(Succeed())
	delete(out, field)
	return out
}
