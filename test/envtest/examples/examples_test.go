// SPDX-License-Identifier: Apache-2.0

// Package examples_test applies the deploy items of the examples as users do, without changing the files.
package examples_test

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/examples/declarative/batch"
	"github.com/deployerkit/deployerkit/examples/declarative/licence"
	"github.com/deployerkit/deployerkit/examples/declarative/redis"
	"github.com/deployerkit/deployerkit/examples/disks"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	// namespace is the namespace of the examples.
	namespace = "demo"
	// patience is the time limit of all waits.
	patience = world.Patience
)

// root is the directory of the examples.
var root = filepath.Join("..", "..", "..", "examples")

func TestExamples(t *testing.T) { world.Run(t, "deploy items of the examples") }

// objects reads the objects in a file, and does not change them.
func objects(path string) []*unstructured.Unstructured {
	GinkgoHelper()
	file, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // of this repository
	Expect(err).NotTo(HaveOccurred())
	var out []*unstructured.Unstructured
	for document := range bytes.SplitSeq(file, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		Expect(yaml.UnmarshalStrict(document, object)).To(Succeed(), path)
		out = append(out, object)
	}
	return out
}

var _ = Describe("Deploy items of the examples", Ordered, func() {
	var (
		cp    *controlplane.ControlPlane
		c     client.Client
		cloud *disks.Cloud
	)

	BeforeAll(func(ctx SpecContext) {
		cp = world.StartControlPlane(ctx, controlplane.Options{ControllerManager: true})
		c = world.NewClient(GinkgoTB(), cp.Config)
		cloud = disks.NewCloud()
		start(cp, cloud)
		Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Expect(landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{}).EnsureContext(ctx, namespace)).To(Succeed())
		// Create the Targets to which the items of the examples refer, and the Secret that contains their kubeconfig.
		Expect(c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
		})).To(Succeed())
		for _, name := range []string{"cluster", "workload", "cluster-eu"} {
			target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
			target.Spec.SecretRef = &lsv1alpha1.LocalSecretReference{Name: "cluster"}
			Expect(c.Create(ctx, target)).To(Succeed())
		}
	})

	It("the API server accepts each item [F48]", world.Slow, func(ctx SpecContext) {
		items := 0
		Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".yaml") || strings.Contains(path, "templates") || strings.Contains(path, "testdata") {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, object := range objects(rel) {
				if object.GetKind() != "DeployItem" {
					continue
				}
				items++
				if object.GetNamespace() == "" {
					// The file contains no namespace, because the conformance command chooses a namespace.
					object.SetNamespace(namespace)
				}
				Expect(c.Create(ctx, object, client.DryRunAll)).To(Succeed(), path)
			}
			return nil
		})).To(Succeed())
		Expect(items).To(BeNumerically(">", 40))
	})

	It("the API server rejects an item without apiVersion and kind in its configuration, as the guide says [F48]", func(ctx SpecContext) {
		item := objects("readme-deployer/item.yaml")[0]
		unstructured.RemoveNestedField(item.Object, "spec", "config", "apiVersion")
		Expect(c.Create(ctx, item, client.DryRunAll)).To(MatchError(ContainSubstring("spec.config.apiVersion: Required value")))
	})

	DescribeTable("the deployer of an example ends the item in the expected phase [F48]", func(ctx SpecContext, file string, want lsv1alpha1.DeployItemPhase, play func(context.Context)) {
		var item *unstructured.Unstructured
		for _, object := range objects(file) {
			Expect(client.IgnoreAlreadyExists(c.Create(ctx, object))).To(Succeed())
			if object.GetKind() == "DeployItem" {
				item = object
			}
		}
		key := client.ObjectKeyFromObject(item)
		ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})
		if item.GetAnnotations()[lsv1alpha1.DeployerTypeAnnotation] != "" {
			_, err := ls.Trigger(ctx, key) // the item needs a job
			Expect(err).NotTo(HaveOccurred())
		}
		Eventually(func(g Gomega) {
			if play != nil {
				play(ctx)
			}
			di, err := ls.Get(ctx, key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(di.Status.Phase).To(Equal(want), "status: %+v", di.Status)
		}).WithTimeout(patience).Should(Succeed())
	},
		Entry("mock: hello", "deploy-items/hello.yaml", succeeded, nil),
		Entry("mock: database", "deploy-items/database.yaml", succeeded, nil),
		Entry("mock: ingress", "deploy-items/ingress.yaml", succeeded, nil),
		Entry("mock: heartbeat", "deploy-items/heartbeat.yaml", succeeded, nil),
		Entry("mock: modern", "deploy-items/modern.yaml", succeeded, nil),
		Entry(`the mock item "misspelt" fails`, "deploy-items/misspelt.yaml", failed, nil),
		Entry(`the mock item "impatient" fails`, "deploy-items/impatient.yaml", failed, nil),
		Entry(`the mock item "migration" never ends`, "deploy-items/migration.yaml", lsv1alpha1.DeployItemPhases.Progressing, nil),
		Entry("manifest: logging", "deploy-items/logging.yaml", succeeded, nil),
		Entry("declarative: redis", "declarative/redis/item.yaml", succeeded, nil),
		Entry("declarative: licence", "declarative/licence/item.yaml", succeeded, nil),
		Entry("declarative: batch", "declarative/batch/item.yaml", succeeded, func(ctx context.Context) { completeJobs(ctx, c) }),
		Entry("state graph: galera", "galera/item.yaml", succeeded, func(ctx context.Context) { createCertificate(ctx, c) }),
		Entry("plain: disks", "disks/item.yaml", succeeded, func(context.Context) { cloud.SetReady() }),
	)
})

const (
	succeeded = lsv1alpha1.DeployItemPhase(lsv1alpha1.PhaseStringSucceeded)
	failed    = lsv1alpha1.DeployItemPhase(lsv1alpha1.PhaseStringFailed)
)

// start runs the deployers of those examples that are libraries. The programs readme-deployer, echo and galera-deployer
// have their own suites. Pods become ready immediately, except for the Pods of Jobs.
func start(cp *controlplane.ControlPlane, cloud *disks.Cloud) {
	GinkgoHelper()
	local := targets.Policy{AllowPrivateHosts: true}
	graph, err := galera.BuildGraph()
	Expect(err).NotTo(HaveOccurred())
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a licence")) }))
	DeferCleanup(service.Close)
	var options []landscapertest.ManagerOption
	for _, args := range []deployerlib.DeployerArgs{
		manifest.Args(nil, manifest.Options{Targets: local}), redis.Args(local), batch.Args(local), licence.Args(service.URL, local),
		stategraph.Args("galera-deployer", "example.org/galera", graph, stategraph.Options{Targets: local}),
		{Name: "disk-deployer", Type: disks.Type, Deployer: disks.New(cloud)},
	} {
		options = append(options, landscapertest.WithDeployer(args))
	}
	mgr := landscapertest.StartManager(GinkgoTB(), cp.Config, mock.Args(nil), options...)
	Expect(controlplane.AddKubelet(mgr, func(pod *corev1.Pod) bool { return pod.Labels[batchv1.JobNameLabel] == "" })).To(Succeed())
}

// completeJobs makes the Pods of Jobs complete.
func completeJobs(ctx context.Context, c client.Client) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(c.List(ctx, pods, client.InNamespace(namespace), client.HasLabels{batchv1.JobNameLabel})).To(Succeed())
	for i := range pods.Items {
		body := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"phase": "Succeeded"}}`))
		Expect(client.IgnoreNotFound(c.Status().Patch(ctx, &pods.Items[i], body))).To(Succeed())
	}
}

// createCertificate creates a certificate, as the issuer of certificates would.
func createCertificate(ctx context.Context, c client.Client) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "galera-tls"}}
	body := client.RawPatch("application/merge-patch+json", []byte(`{"stringData": {"tls.crt": "none", "tls.key": "none"}}`))
	Expect(client.IgnoreNotFound(c.Patch(ctx, secret, body))).To(Succeed())
}
