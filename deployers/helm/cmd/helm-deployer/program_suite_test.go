// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// patience is the time limit of each wait. It is long because the machine may be busy.
	patience = 2 * time.Minute
	// asProgram is the environment variable that makes the binary of the tests run the program.
	asProgram = "DEPLOYERKIT_RUN_HELM_DEPLOYER"
)

var (
	cp *controlplane.ControlPlane
	c  client.Client // reads from the API server
	// kubeconfig is a file with the kubeconfig for cp.
	kubeconfig string
)

// TestMain runs the program if a test has started the binary for this purpose. There is no second binary to link.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestProgram(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "helm-deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err = cp.WriteKubeconfig("")
	Expect(err).NotTo(HaveOccurred())
})

// world is the environment of a spec: a namespace with a Context and a Target for the control plane, and a simulated
// Landscaper.
type world struct {
	*landscapertest.Landscaper

	namespace string
}

// newWorld creates a world.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "helm-"}}
	Expect(c.Create(ctx, ns)).To(Succeed())
	w := &world{
		Landscaper: landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true}),
		namespace:  ns.Name,
	}
	Expect(w.EnsureContext(ctx, w.namespace)).To(Succeed())
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cluster"},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	})).To(Succeed())
	return w
}

// run runs the program until it ends or the spec ends. It returns the process, whose output contains the log.
func run(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(os.Args[0], args...) //nolint:gosec // the binary of the tests
	cmd.Env = append(os.Environ(), asProgram+"=1")
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(patience) })
	return session
}

// start starts the deployer for the items of the world.
func (w *world) start(args ...string) *gexec.Session {
	GinkgoHelper()
	return run(slices.Concat([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + w.namespace, "--leader-election-namespace=" + w.namespace, "--allow-private-hosts",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--history-bind-address=0", "--verbosity=debug", "--grace-period=5s",
	}, args)...)
}

// itemConfig is the configuration of an item.
type itemConfig map[string]any

// config returns the configuration of an item with a chart. The release has the name web and is in the namespace of the
// world.
func (w *world) config(chart map[string]any, more itemConfig) itemConfig {
	out := itemConfig{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": w.namespace,
		"chart": chart,
	}
	maps.Copy(out, more)
	return out
}

// raw returns the field chart of a configuration with a chart in the item itself.
func raw(files charttest.Files) map[string]any {
	return map[string]any{"archive": map[string]any{"raw": files.Base64()}}
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// item returns an item for the Target of the world.
func (w *world) item(name string, config any) *lsv1alpha1.DeployItem {
	di := w.Item(w.namespace, name, helm.Type, config)
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	return di
}

// deploy creates an item, or changes its configuration, and waits for the end of its job.
func (w *world) deploy(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := w.Get(ctx, w.key(name)); err != nil {
		Expect(w.Deploy(ctx, w.item(name, config))).To(Succeed())
		di, err := w.WaitUntilFinished(ctx, w.key(name))
		Expect(err).NotTo(HaveOccurred())
		return di
	}
	Expect(w.Update(ctx, w.key(name), config)).To(Succeed())
	return w.again(ctx, name)
}

// again requests another job and waits for its end.
func (w *world) again(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := w.Trigger(ctx, w.key(name))
	Expect(err).NotTo(HaveOccurred())
	di, err := w.WaitForJob(ctx, w.key(name), job)
	Expect(err).NotTo(HaveOccurred())
	return di
}

// remove deletes an item and waits until it is gone.
func (w *world) remove(ctx context.Context, names ...string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range names {
		Expect(w.Delete(ctx, w.key(name))).To(Succeed())
	}
}

// history returns the revisions of a release, each as "number status".
func (w *world) history(ctx context.Context, name string) []string {
	GinkgoHelper()
	found, err := release.NewStorage(c, w.namespace, name).List(ctx)
	Expect(err).NotTo(HaveOccurred())
	out := []string{}
	for _, one := range found {
		out = append(out, fmt.Sprintf("%d %s", one.Number, one.Status))
	}
	return out
}

// color returns the value in the ConfigMap of a release with the chart colors.
func (w *world) color(ctx context.Context, release string) string {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(c.Get(ctx, w.key(release), cm)).To(Succeed())
	return cm.Data["color"]
}

// colors returns a chart with a ConfigMap that is named like the release. Its value is the given default, unless the item sets color.
func colors(value string) charttest.Files {
	return charttest.Files{
		"values.yaml":      "color: " + value + "\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata: {color: \"{{ .Values.color }}\"}\n",
	}
}

// createSecret creates a Secret in the namespace of the world.
func (w *world) createSecret(ctx context.Context, name string, kind corev1.SecretType, data map[string][]byte) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Type: kind, Data: data})).To(Succeed())
}

// setContext changes the Context of the items.
func (w *world) setContext(ctx context.Context, change func(*lsv1alpha1.Context)) {
	GinkgoHelper()
	found := &lsv1alpha1.Context{}
	Expect(c.Get(ctx, w.key(lsv1alpha1.DefaultContextName), found)).To(Succeed())
	change(found)
	Expect(c.Update(ctx, found)).To(Succeed())
}

// writeFile writes a file and returns its path.
func writeFile(content []byte) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "file")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// findFreeAddress returns an address on which nothing listens.
func findFreeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of a test
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return l.Addr().String()
}

// get returns a function that reads a page.
func get(ctx context.Context, url string) func() (string, error) {
	return func() (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
}

// beSucceeded matches an item whose last job succeeded.
func beSucceeded() OmegaMatcher { return WithTransform(outcome, Equal("Succeeded")) }

// beFailed matches an item whose last job failed with an error that contains the given texts.
func beFailed(texts ...string) OmegaMatcher {
	matchers := []OmegaMatcher{HavePrefix("Failed: ")}
	for _, text := range texts {
		matchers = append(matchers, ContainSubstring(text))
	}
	return WithTransform(outcome, And(matchers...))
}

// outcome returns the phase of an item and its last error.
func outcome(di *lsv1alpha1.DeployItem) string {
	if di.Status.LastError != nil {
		return fmt.Sprintf("%s: %s", di.Status.Phase, di.Status.LastError.Message)
	}
	return string(di.Status.Phase)
}
