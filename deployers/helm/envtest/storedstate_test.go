// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// The folder testdata/storedstate contains what versions of the deployer stored for an item: the item with its status, the
// release records, and the objects with their marks. DEPLOYERKIT_RECORD=<version> records the state of this version.

// storedKinds are the kinds of the recorded objects, with the prefixes of their keys in etcd.
var storedKinds = []struct {
	gvk    schema.GroupVersionKind
	prefix string
}{
	{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces"},
	{lsv1alpha1.SchemeGroupVersion.WithKind("Context"), "landscaper.gardener.cloud/contexts"},
	{lsv1alpha1.SchemeGroupVersion.WithKind("Target"), "landscaper.gardener.cloud/targets"},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps"},
	{corev1.SchemeGroupVersion.WithKind("Secret"), "secrets"},
	{lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"), "landscaper.gardener.cloud/deployitems"},
}

// storedChart is the chart of the recorded item. Each value of step has its own object, and one object is kept.
var storedChart = charttest.Files{
	"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: main}\ndata: {step: \"{{ .Values.step }}\"}\n",
	"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"only-{{ .Values.step }}\"}\n",
	"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n",
	"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\n",
}

// storedWorld is a control plane with the recorded item.
type storedWorld struct {
	client.Client

	cp         *controlplane.ControlPlane
	landscaper *landscapertest.Landscaper
}

// storedNamespace and storedKey identify the item and its release.
const storedNamespace = "demo"

var storedKey = types.NamespacedName{Namespace: storedNamespace, Name: "item"}

// newStoredWorld returns a control plane that does not contain the namespace yet.
func newStoredWorld(own *controlplane.ControlPlane) *storedWorld {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(own.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return &storedWorld{c, own, landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true})}
}

// start creates the Secret of the Target, which is not recorded, and starts the deployer.
func (w *storedWorld) start(ctx context.Context) {
	GinkgoHelper()
	Expect(w.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: storedNamespace, Name: "cluster"}, Data: map[string][]byte{"kubeconfig": w.cp.Kubeconfig()},
	})).To(Succeed())
	landscapertest.StartManager(GinkgoTB(), w.cp.Config, helm.Args(nil, helm.Options{Targets: targets.Policy{AllowPrivateHosts: true}}), landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.DefaultNamespaces = map[string]cache.Config{storedNamespace: {}}
	}))
}

// config returns the configuration of the item.
func (w *storedWorld) config(step string) config {
	return config{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": storedNamespace,
		"chart": map[string]any{"archive": map[string]any{"raw": storedChart.Base64()}}, "values": map[string]any{"step": step},
	}
}

// run runs a job of the item, which must succeed.
func (w *storedWorld) run(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := w.landscaper.Trigger(ctx, storedKey)
	Expect(err).NotTo(HaveOccurred())
	di, err := w.landscaper.WaitForJob(ctx, storedKey, job)
	Expect(err).NotTo(HaveOccurred())
	Expect(di).To(beSucceeded())
}

// revisions returns the revisions of the release.
func (w *storedWorld) revisions(ctx context.Context) []string {
	GinkgoHelper()
	found, err := release.NewStorage(w, storedNamespace, "web").List(ctx)
	Expect(err).NotTo(HaveOccurred())
	out := []string{}
	for _, one := range found {
		out = append(out, fmt.Sprintf("%d %s", one.Number, one.Status))
	}
	return out
}

// read reads a ConfigMap. It returns nil if the ConfigMap does not exist.
func (w *storedWorld) read(ctx context.Context, name string) *corev1.ConfigMap {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	err := w.Get(ctx, types.NamespacedName{Namespace: storedNamespace, Name: name}, cm)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return cm
}

// record runs two jobs, and writes what is stored then to a file.
func (w *storedWorld) record(ctx context.Context, path string) {
	GinkgoHelper()
	Expect(w.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: storedNamespace}})).To(Succeed())
	Expect(w.landscaper.EnsureContext(ctx, storedNamespace)).To(Succeed())
	Expect(w.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: storedNamespace, Name: "cluster"},
		Spec: lsv1alpha1.TargetSpec{
			Type: targettypes.KubernetesClusterTargetType, SecretRef: &lsv1alpha1.LocalSecretReference{Name: "cluster"},
		},
	})).To(Succeed())
	w.start(ctx)
	di := w.landscaper.Item(storedNamespace, storedKey.Name, helm.Type, w.config("one"))
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	Expect(w.landscaper.Create(ctx, di)).To(Succeed())
	w.run(ctx)
	Expect(w.landscaper.Update(ctx, storedKey, w.config("two"))).To(Succeed())
	w.run(ctx)
	var documents []string
	for _, kind := range storedKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.gvk.GroupVersion().WithKind(kind.gvk.Kind + "List"))
		Expect(w.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			obj := &list.Items[i]
			place := cmp.Or(obj.GetNamespace(), obj.GetName())
			if place != storedNamespace && obj.GetName() != metav1.NamespaceSystem || obj.GetName() == "kube-root-ca.crt" || obj.GetKind() == "Secret" && obj.GetName() == "cluster" {
				continue
			}
			obj.SetResourceVersion("")
			document, err := yaml.Marshal(obj.Object)
			Expect(err).NotTo(HaveOccurred())
			documents = append(documents, string(document))
		}
	}
	Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
	Expect(os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600)).To(Succeed())
}

// restore writes the objects of a file to etcd as they are, with their UIDs and managedFields, which the API server would
// replace. It returns the ConfigMaps of the item, and the UIDs of the records.
func (w *storedWorld) restore(ctx context.Context, path string) (owned map[string]types.UID, records map[string]types.UID) {
	GinkgoHelper()
	owned, records = map[string]types.UID{}, map[string]types.UID{}
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(content), "---\n") {
		obj := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
		if obj.GetLabels()[ownership.LabelItem] != "" {
			owned[obj.GetName()] = obj.GetUID()
		}
		if obj.GetKind() == "Secret" {
			records[obj.GetName()] = obj.GetUID()
		}
		w.put(ctx, obj)
	}
	return owned, records
}

// put writes an object to etcd.
func (w *storedWorld) put(ctx context.Context, obj *unstructured.Unstructured) {
	GinkgoHelper()
	key := ""
	for _, kind := range storedKinds {
		if kind.gvk == obj.GroupVersionKind() {
			key = strings.TrimSuffix(strings.Join([]string{"/registry", kind.prefix, obj.GetNamespace(), obj.GetName()}, "/"), "/")
			key = strings.ReplaceAll(key, "//", "/")
		}
	}
	Expect(key).NotTo(BeEmpty(), "%s", obj.GroupVersionKind())
	value, err := obj.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value})
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cp.EtcdURL()+"/v3/kv/put", bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK), key)
}

var _ = Describe("Stored state", func() {
	versions, err := filepath.Glob(filepath.Join("testdata", "storedstate", "*.yaml"))
	if err != nil || len(versions) == 0 && os.Getenv("DEPLOYERKIT_RECORD") == "" {
		panic(fmt.Sprint("no recorded versions: ", err))
	}
	for _, path := range versions {
		It("of version "+strings.TrimSuffix(filepath.Base(path), ".yaml")+" is continued: its objects are kept, changed and deleted [Q5]", func(ctx SpecContext) {
			own, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(own.Stop)
			w := newStoredWorld(own)
			owned, records := w.restore(ctx, path)
			Expect(owned).To(HaveLen(3))
			Expect(records).To(HaveLen(2))
			Eventually(func() error { return w.Get(ctx, storedKey, &lsv1alpha1.DeployItem{}) }).Should(Succeed())
			before := w.read(ctx, "main")
			w.start(ctx)

			By("an unchanged job")
			w.run(ctx)
			Expect(w.revisions(ctx)).To(Equal([]string{"1 superseded", "2 deployed"}))
			for name, uid := range owned {
				Expect(w.read(ctx, name)).To(HaveField("UID", uid), name)
			}
			for name, uid := range records {
				secret := &corev1.Secret{}
				Expect(w.Get(ctx, types.NamespacedName{Namespace: storedNamespace, Name: name}, secret)).To(Succeed())
				Expect(secret.UID).To(Equal(uid))
			}
			Expect(w.read(ctx, "main").ResourceVersion).To(Equal(before.ResourceVersion), "the object was not written")

			By("a changed job")
			Expect(w.landscaper.Update(ctx, storedKey, w.config("three"))).To(Succeed())
			w.run(ctx)
			Expect(w.revisions(ctx)).To(Equal([]string{"1 superseded", "2 superseded", "3 deployed"}))
			main := w.read(ctx, "main")
			Expect(main.Data).To(Equal(map[string]string{"step": "three"}))
			Expect(main.UID).To(Equal(owned["main"]))
			Expect(w.read(ctx, "only-two")).To(BeNil())
			Expect(w.read(ctx, "kept").UID).To(Equal(owned["kept"]))

			By("the deletion")
			Expect(w.landscaper.Delete(ctx, storedKey)).To(Succeed())
			Expect(w.read(ctx, "main")).To(BeNil())
			Expect(w.read(ctx, "only-three")).To(BeNil())
			Expect(w.read(ctx, "kept")).To(HaveField("UID", owned["kept"]))
			Expect(w.revisions(ctx)).To(BeEmpty())
		})
	}

	It("is recorded for this version", func(ctx SpecContext) {
		path := filepath.Join("testdata", "storedstate", os.Getenv("DEPLOYERKIT_RECORD")+".yaml")
		if os.Getenv("DEPLOYERKIT_RECORD") == "" { // a run that is thrown away, so that recording works when it is needed
			path = filepath.Join(GinkgoT().TempDir(), "this.yaml")
		}
		newStoredWorld(cp).record(ctx, path)
		content, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(content)).To(And(ContainSubstring("kind: DeployItem"), ContainSubstring("sh.helm.release.v1.web.v2"), ContainSubstring("kind: ConfigMap")))
		Expect(string(content)).NotTo(ContainSubstring("client-key-data"))
	})
})
