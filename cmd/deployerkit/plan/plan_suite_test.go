// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

const timeout = 2 * time.Minute

var (
	cp *controlplane.ControlPlane
	c  client.Client // reads from the API server
	ls *landscapertest.Landscaper
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "plan")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	ls = landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
	args := manifest.Args(nil, manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}})
	landscapertest.StartManager(GinkgoTB(), cp.Config, args)
})

// createNamespace creates a namespace with the Target "cluster". It changes the working directory to a new directory
// with the file landscaper.kubeconfig.
func createNamespace(ctx context.Context, ns string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	newTarget(ctx, ns, "cluster", string(cp.Kubeconfig()))
	dir := GinkgoT().TempDir()
	GinkgoT().Chdir(dir)
	Expect(os.WriteFile(filepath.Join(dir, "landscaper.kubeconfig"), cp.Kubeconfig(), 0o600)).To(Succeed())
}

func newTarget(ctx context.Context, ns, name, kubeconfig string) {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{"kubeconfig": kubeconfig})
	Expect(err).NotTo(HaveOccurred())
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	Expect(c.Create(ctx, target)).To(Succeed())
}

// item returns a deploy item with the given manifests.
func item(ns, name string, manifests ...string) *lsv1alpha1.DeployItem {
	config := `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderConfiguration","manifests":[`
	for i, m := range manifests {
		if i > 0 {
			config += ","
		}
		raw, err := yaml.YAMLToJSON([]byte(m))
		Expect(err).NotTo(HaveOccurred())
		config += `{"manifest":` + string(raw) + `}`
	}
	di := ls.Item(ns, name, manifest.Type, config+"]}")
	di.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	return di
}

// applyItem creates or updates an item and waits until its run succeeds.
func applyItem(ctx context.Context, di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	key := client.ObjectKeyFromObject(di)
	stored := &lsv1alpha1.DeployItem{}
	if err := c.Get(ctx, key, stored); err == nil {
		stored.Spec = di.Spec
		Expect(c.Update(ctx, stored)).To(Succeed())
		job, err := ls.Trigger(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		waitUntilSucceeded(ctx, key, job)
		return
	}
	Expect(ls.Deploy(ctx, di.DeepCopy())).To(Succeed())
	waitUntilSucceeded(ctx, key, "")
}

func waitUntilSucceeded(ctx context.Context, key types.NamespacedName, job string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	await := func() (*lsv1alpha1.DeployItem, error) { return ls.WaitUntilFinished(ctx, key) }
	if job != "" {
		await = func() (*lsv1alpha1.DeployItem, error) { return ls.WaitForJob(ctx, key, job) }
	}
	di, err := await()
	Expect(err).NotTo(HaveOccurred())
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
}

// file writes an item to a file and returns the path of the file.
func file(di *lsv1alpha1.DeployItem) string {
	GinkgoHelper()
	body, err := yaml.Marshal(di)
	Expect(err).NotTo(HaveOccurred())
	return write(string(body))
}

func write(content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "item.yaml")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// run runs the command with the kubeconfig that the function `createNamespace` wrote. It allows private addresses,
// because the cluster has a private address.
func run(ctx context.Context, args ...string) (string, error) {
	return runWithInput(ctx, "", append(args, "--kubeconfig=landscaper.kubeconfig", "--allow-private-hosts")...)
}

// runWithInput runs the command with the given standard input and arguments. It returns standard output and standard
// error together.
func runWithInput(ctx context.Context, input string, args ...string) (string, error) {
	out := &bytes.Buffer{}
	cmd := plan.Command()
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	GinkgoWriter.Println(args, "\n"+out.String())
	return out.String(), err
}

// listVersions returns the resourceVersions, by UID, of all objects in a namespace that a plan might have written by
// mistake.
func listVersions(ctx context.Context, ns string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.EventList{}, &lsv1alpha1.DeployItemList{}, &lsv1alpha1.TargetList{},
	} {
		Expect(c.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		raw, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		var objects struct {
			Items []metav1.PartialObjectMetadata
		}
		Expect(json.Unmarshal(raw, &objects)).To(Succeed())
		for _, object := range objects.Items {
			found[string(object.UID)] = object.ResourceVersion
		}
	}
	return found
}

// noFinalizers is a patch that removes the finalizers of an object.
var noFinalizers = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
