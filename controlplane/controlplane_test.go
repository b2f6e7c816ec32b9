// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
)

const timeout = 2 * time.Minute

// start starts a control plane. The control plane runs until the current container of specs ends.
func start(ctx context.Context, o controlplane.Options) *controlplane.ControlPlane {
	GinkgoHelper()
	o.Progress = GinkgoWriter
	cp, err := controlplane.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	return cp
}

func newClient(config *rest.Config) client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(lsv1alpha1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func newItem(name string) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec:       lsv1alpha1.DeployItemSpec{Type: "test/envtest", UpdateOnChangeOnly: true},
	}
}

// writeJob writes a status with a job ID, as Landscaper does in the job-ID revision.
func writeJob(ctx context.Context, c client.Client, item *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	item.Status.JobID, item.Status.ObservedGeneration, item.Status.Phase = "job", 1, "Init"
	Expect(c.Status().Update(ctx, item)).To(Succeed())
	Expect(c.Get(ctx, client.ObjectKeyFromObject(item), item)).To(Succeed())
}

var _ = Describe("Control plane with controllers", Ordered, func() {
	var (
		cp *controlplane.ControlPlane
		c  client.Client
	)
	BeforeAll(func(ctx SpecContext) {
		cp = start(ctx, controlplane.Options{ControllerManager: true})
		c = newClient(cp.Config)
	})

	It("stores a DeployItem with all its fields", func(ctx SpecContext) {
		item := newItem("stored")
		Expect(c.Create(ctx, item)).To(Succeed())
		writeJob(ctx, c, item)
		Expect(item.Spec.UpdateOnChangeOnly).To(BeTrue())
		Expect(item.Status.JobID).To(Equal("job"))
	})

	It("serves all kinds of Landscaper", func(ctx SpecContext) {
		Expect(c.List(ctx, &lsv1alpha1.TargetList{})).To(Succeed())
		Expect(c.List(ctx, &lsv1alpha1.ContextList{})).To(Succeed())
		Expect(c.List(ctx, &lsv1alpha1.ExecutionList{})).To(Succeed())
	})

	It("creates ReplicaSets and Pods of a Deployment, and deletes them with it", func(ctx SpecContext) {
		labels := map[string]string{"app": "web"}
		replicas := int32(2)
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web"}}},
				},
			},
		}
		Expect(c.Create(ctx, deployment)).To(Succeed())
		pods := func(g Gomega) []corev1.Pod {
			var list corev1.PodList
			g.Expect(c.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels(labels))).To(Succeed())
			return list.Items
		}
		Eventually(func(g Gomega) { g.Expect(pods(g)).To(HaveLen(2)) }).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
		Expect(c.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(pods(g)).To(BeEmpty()) }).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
	})

	It("deletes objects that a deleted DeployItem owns", func(ctx SpecContext) {
		item := newItem("owner")
		Expect(c.Create(ctx, item)).To(Succeed())
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: "owned", Namespace: item.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(item, lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem"))},
		}}
		Expect(c.Create(ctx, secret)).To(Succeed())
		Expect(c.Delete(ctx, item)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(secret), secret))
		}).WithContext(ctx).WithTimeout(timeout).Should(BeTrue())
	})

	It("refuses a second controller manager and an unknown controller", func(ctx SpecContext) {
		Expect(cp.StartControllerManager(ctx)).To(MatchError(ContainSubstring("already running")))
		Expect(cp.StopControllerManager()).To(Succeed())
		Expect(cp.StartControllerManager(ctx, "no-such-controller")).
			To(MatchError(ContainSubstring("is not in the list of known controllers")))
		Expect(cp.StartControllerManager(ctx)).To(Succeed())
	})

	It("returns a kubeconfig, and restricts other users to their rights", func(ctx SpecContext) {
		path, err := cp.WriteKubeconfig(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.BuildConfigFromFlags("", path)
		Expect(err).NotTo(HaveOccurred())
		Expect(newClient(config).List(ctx, &corev1.SecretList{})).To(Succeed())
		user, err := cp.AddUser("user-without-rights")
		Expect(err).NotTo(HaveOccurred())
		Expect(apierrors.IsForbidden(newClient(user).List(ctx, &corev1.SecretList{}))).To(BeTrue())
	})

	It("keeps its data, address and certificates when the API server restarts", func(ctx SpecContext) {
		Expect(c.Create(ctx, newItem("kept"))).To(Succeed())
		Expect(cp.StopAPIServer()).To(Succeed())
		Expect(cp.StopAPIServer()).To(Succeed(), "stopping twice does nothing")
		Expect(c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kept"}, newItem(""))).
			To(MatchError(ContainSubstring("connection refused")))
		Expect(cp.StartAPIServer()).To(Succeed())
		Expect(cp.StartAPIServer()).To(Succeed(), "starting twice does nothing")
		Expect(c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kept"}, newItem(""))).To(Succeed())
		Expect(cp.RestartAPIServer()).To(Succeed())
		Expect(c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kept"}, newItem(""))).To(Succeed())
	})

	It("keeps its data when etcd restarts", func(ctx SpecContext) {
		Expect(c.Create(ctx, newItem("in-etcd"))).To(Succeed())
		Expect(cp.StopEtcd()).To(Succeed())
		Expect(cp.StopEtcd()).To(Succeed(), "stopping twice does nothing")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		Expect(c.Create(short, newItem("not-stored"))).NotTo(Succeed())
		Expect(cp.StartEtcd()).To(Succeed())
		Expect(cp.StartEtcd()).To(Succeed(), "starting twice does nothing")
		Eventually(func() error { return c.Create(ctx, newItem("later")) }).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
		Expect(c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "in-etcd"}, newItem(""))).To(Succeed())
	})

	It("restores a backup with lower resource versions", func(ctx SpecContext) {
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(cp.BackUpEtcd(backup)).To(Succeed())
		lost := newItem("lost")
		Eventually(func() error { return c.Create(ctx, lost) }).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
		Expect(cp.RestoreEtcd(backup)).To(Succeed())
		Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(lost), newItem("")) }).
			WithContext(ctx).WithTimeout(timeout).Should(Satisfy(apierrors.IsNotFound))
	})

	It("stops, also if it is already stopped", func(ctx SpecContext) {
		Expect(cp.Stop()).To(Succeed())
		Expect(cp.Stop()).To(Succeed())
		Expect(cp.StopAPIServer()).To(Succeed())
		Expect(cp.StartAPIServer()).To(MatchError(ContainSubstring("stopped")))
		Expect(cp.StopEtcd()).To(Succeed())
		Expect(cp.StartEtcd()).To(MatchError(ContainSubstring("stopped")))
		Expect(cp.StartControllerManager(ctx)).To(MatchError(ContainSubstring("stopped")))
		Expect(c.List(ctx, &corev1.SecretList{})).NotTo(Succeed())
	})
})

var _ = Describe("Control plane of the annotation revision", Ordered, func() {
	It("prunes the fields of later versions without an error", func(ctx SpecContext) {
		c := newClient(start(ctx, controlplane.Options{CRDs: controlplane.AnnotationRevisionCRDs()}).Config)
		item := newItem("classic")
		Expect(c.Create(ctx, item)).To(Succeed())
		writeJob(ctx, c, item)
		Expect(item.Spec.UpdateOnChangeOnly).To(BeFalse())
		Expect(item.Status.JobID).To(BeEmpty())
		Expect(item.Status.Phase).To(BeEquivalentTo("Init"))
	})
})

var _ = Describe("Options of a control plane", func() {
	It("installs no definitions if the list is empty, and passes flags to the API server", func(ctx SpecContext) {
		cp := start(ctx, controlplane.Options{
			CRDs:           []*apiextv1.CustomResourceDefinition{},
			APIServerFlags: map[string][]string{"enable-admission-plugins": {"AlwaysPullImages"}},
		})
		c := newClient(cp.Config)
		Expect(c.List(ctx, &lsv1alpha1.DeployItemList{})).NotTo(Succeed())
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pulled", Namespace: metav1.NamespaceDefault},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}},
		}
		Expect(c.Create(ctx, pod)).To(Succeed())
		Expect(pod.Spec.Containers[0].ImagePullPolicy).To(Equal(corev1.PullAlways))
	})

	It("fails with a reason if the binaries do not exist", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{Assets: GinkgoT().TempDir(), Progress: GinkgoWriter})
		Expect(err).To(MatchError(os.ErrNotExist))
	})

	It("does not start if its context has ended", func(ctx SpecContext) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := controlplane.Start(over, controlplane.Options{Assets: GinkgoT().TempDir()})
		Expect(err).To(MatchError(context.Canceled))
		Expect(http.DefaultClient.Timeout).To(BeZero(), "nothing global was changed")
	})
})
