// SPDX-License-Identifier: Apache-2.0

package storedstate_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Stored state", func() {
	versions, err := os.ReadDir("testdata")
	if err != nil {
		panic(err) // the folder is part of the repository
	}
	for _, s := range scenarios {
		Context("of the deployer "+s.name, func() {
			for _, version := range versions {
				It("keeps the objects that version "+version.Name()+" stored, then changes and deletes them [Q5]", func(ctx SpecContext) {
					s.continueFrom(ctx, filepath.Join("testdata", version.Name(), s.name+".yaml"))
				})
			}

			It("writes a record that contains the item", func(ctx SpecContext) {
				name, checkout := os.Getenv("DEPLOYERKIT_RECORD"), os.Getenv("DEPLOYERKIT_CHECKOUT")
				path := filepath.Join("testdata", name, s.name+".yaml")
				if name == "" { // a run that is thrown away, so that recording works when it is needed
					path, checkout = filepath.Join(GinkgoT().TempDir(), s.name+".yaml"), root
				}
				s.record(ctx, path, checkout)
				Expect(readObjects(path)).To(ContainElement(HaveField("GetKind()", "DeployItem")))
			})
		})
	}
})

// record runs the program of a checkout for the item, and writes what is stored then to a file.
func (s scenario) record(ctx context.Context, path, checkout string) {
	GinkgoHelper()
	cp := world.StartControlPlane(ctx, controlplane.Options{})
	c := world.NewClient(GinkgoTB(), cp.Config)
	for _, obj := range readObjects(filepath.Join("items", "landscape.yaml")) {
		Expect(c.Create(ctx, obj)).To(Succeed())
	}
	createTargetSecret(ctx, c, cp)
	start(cp, s.build(ctx, checkout), s.flags)
	item := &lsv1alpha1.DeployItem{}
	convert(readObjects(filepath.Join("items", s.name+".yaml"))[0], item)
	Expect(landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{}).Deploy(ctx, item)).To(Succeed())
	s.waitForState(ctx, c)
	writeFile(path, readStored(ctx, c))
}

// continueFrom stores the objects of a file, runs the program of this version, and checks that the program continues
// with them: it keeps all objects in a new job, changes them, and deletes them with the item.
func (s scenario) continueFrom(ctx context.Context, path string) {
	GinkgoHelper()
	cp := world.StartControlPlane(ctx, controlplane.Options{})
	c := world.NewClient(GinkgoTB(), cp.Config)
	stored := readObjects(path)
	store(ctx, cp, stored)
	Eventually(c.Get).WithContext(ctx).WithArguments(key, &lsv1alpha1.DeployItem{}).WithTimeout(world.Patience).Should(Succeed())
	createTargetSecret(ctx, c, cp)
	owned := listOwned(stored)
	Expect(owned).NotTo(BeEmpty())
	start(cp, s.build(ctx, root), s.flags)
	ls := landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{})

	By("an unchanged job")
	s.runJob(ctx, c, ls)
	for _, before := range owned {
		requireKept(ctx, c, before)
	}

	if s.change != nil {
		By("a changed job")
		item := &lsv1alpha1.DeployItem{}
		Expect(c.Get(ctx, key, item)).To(Succeed())
		config, err := os.ReadFile(filepath.Join("items", s.name+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		edited := &unstructured.Unstructured{}
		convertYAML(s.change(string(config)), edited)
		Expect(ls.Update(ctx, key, edited.Object["spec"].(map[string]any)["config"])).To(Succeed())
		s.runJob(ctx, c, ls)
		changed := owned[slices.IndexFunc(owned, func(obj *unstructured.Unstructured) bool {
			return obj.GetKind() == s.changed.kind && obj.GetName() == s.changed.name
		})]
		Eventually(func(g Gomega) {
			obj, err := get(ctx, c, objectOf(changed))
			g.Expect(err).NotTo(HaveOccurred())
			text, err := obj.MarshalJSON()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).To(ContainSubstring(s.changed.text))
			g.Expect(obj.GetUID()).To(Equal(changed.GetUID()), "it is the same object")
		}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
		if s.removed != nil {
			Eventually(exists).WithContext(ctx).WithArguments(c, *s.removed).WithTimeout(world.Patience).Should(BeFalse())
		}
	}

	By("the deletion")
	Expect(ls.Delete(ctx, key)).To(Succeed())
	for _, before := range owned {
		kept := s.kept != nil && before.GetName() == s.kept.name && before.GetKind() == s.kept.kind
		Expect(exists(ctx, c, objectOf(before))).To(Equal(kept), "%s %s exists", before.GetKind(), before.GetName())
	}
}

// runJob runs a new job of the item, and waits until it has ended or, in a scenario that never succeeds, until the item
// waits again.
func (s scenario) runJob(ctx context.Context, c client.Client, ls *landscapertest.Landscaper) {
	GinkgoHelper()
	job, err := ls.Trigger(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		item := &lsv1alpha1.DeployItem{}
		g.Expect(c.Get(ctx, key, item)).To(Succeed())
		g.Expect(item.Status.GetJobID()).To(Equal(job))
		g.Expect(item.Status.LastReconcileTime).NotTo(BeNil())
		g.Expect(item.Status.ObservedGeneration).To(Equal(item.Generation))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
	s.waitForState(ctx, c)
}

// build builds the program of a checkout. A program that is up to date is not linked again.
func (s scenario) build(ctx context.Context, checkout string) string {
	GinkgoHelper()
	path := filepath.Join(programs, filepath.Base(s.program))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, s.program) //nolint:gosec // a constant
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return path
}

// start starts a program with administrator rights, and ends it with the spec.
func start(cp *controlplane.ControlPlane, program string, flags []string) {
	GinkgoHelper()
	kubeconfig, err := cp.WriteKubeconfig("")
	Expect(err).NotTo(HaveOccurred())
	args := append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)
	cmd := exec.Command(program, args...)                    //nolint:gosec // built here
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig) // for early versions of the examples, which have no flags
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(world.Patience) })
}

// createTargetSecret creates the Secret of the Target. It contains credentials, so it is not recorded.
func createTargetSecret(ctx context.Context, c client.Client, cp *controlplane.ControlPlane) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "cluster"}, Data: map[string][]byte{"kubeconfig": cp.Kubeconfig()},
	})).To(Succeed())
}

// listOwned returns the recorded objects of the item in the target.
func listOwned(stored []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range stored {
		if obj.GetLabels()[ownership.LabelItem] != "" {
			out = append(out, obj)
		}
	}
	return out
}

// requireKept requires that an object is the same as before, still belongs to its item, and is not being deleted.
func requireKept(ctx context.Context, c client.Client, before *unstructured.Unstructured) {
	GinkgoHelper()
	now, err := get(ctx, c, objectOf(before))
	Expect(err).NotTo(HaveOccurred())
	Expect(now.GetUID()).To(Equal(before.GetUID()), "%s %s was created again", before.GetKind(), before.GetName())
	Expect(now.GetDeletionTimestamp()).To(BeNil())
	Expect(now.GetLabels()).To(HaveKeyWithValue(ownership.LabelItem, before.GetLabels()[ownership.LabelItem]))
	for name := range before.GetAnnotations() {
		if strings.HasPrefix(name, ownership.Prefix) {
			Expect(now.GetAnnotations()).To(HaveKey(name))
		}
	}
}

func objectOf(obj *unstructured.Unstructured) object {
	return object{apiVersion: obj.GetAPIVersion(), kind: obj.GetKind(), name: obj.GetName()}
}
