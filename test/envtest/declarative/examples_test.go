// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployerlib"
	examples "github.com/deployerkit/deployerkit/examples/declarative"
	"github.com/deployerkit/deployerkit/examples/declarative/batch"
	"github.com/deployerkit/deployerkit/examples/declarative/licence"
	"github.com/deployerkit/deployerkit/examples/declarative/redis"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// local is a policy that accepts targets on this machine.
var local = targets.Policy{AllowPrivateHosts: true}

// demo matches the namespace of the examples. A spec replaces this namespace with its own namespace.
var demo = regexp.MustCompile(`\bdemo\b`)

// run runs the deployer of an example. The deployer handles only the items of this world.
func (w *env) run(args deployerlib.DeployerArgs) *env {
	GinkgoHelper()
	args.Type = w.Type
	args.Backoff.Max = time.Second
	w.Manager = landscapertest.StartManager(GinkgoTB(), cp.Config, args)
	return w
}

// createExample creates the item of an example and requests its first run, without waiting.
func (w *env) createExample(ctx context.Context, name string) {
	GinkgoHelper()
	files, err := fs.Glob(examples.Items, "*/item.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		body, err := examples.Items.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		di := &lsv1alpha1.DeployItem{}
		Expect(yaml.UnmarshalStrict(demo.ReplaceAll(body, []byte(w.Namespace)), di)).To(Succeed(), file)
		if di.Name == name {
			di.Spec.Type = w.Type
			Expect(w.Landscaper.Deploy(ctx, di)).To(Succeed())
			return
		}
	}
	Fail("there is no example " + name)
}

// finished waits until the job of an item has ended.
func (w *env) finished(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	di, err := w.Landscaper.WaitUntilFinished(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
	return di
}

// updateAndStart changes the configuration of an item and starts a job, without waiting.
func (w *env) updateAndStart(ctx context.Context, name string, config any) {
	GinkgoHelper()
	raw, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	body := map[string]any{}
	Expect(json.Unmarshal(raw, &body)).To(Succeed())
	body["apiVersion"], body["kind"] = "example.org/v1", "Config"
	Expect(w.Landscaper.Update(ctx, w.Key(name), body)).To(Succeed())
	_, err = w.Landscaper.Trigger(ctx, w.Key(name))
	Expect(err).NotTo(HaveOccurred())
}

// object returns a function that reads an object in the target into obj. The function returns false if the object does
// not exist.
func (w *env) object(ctx context.Context, name string, obj client.Object) func(Gomega) bool {
	return func(g Gomega) bool {
		err := w.Client.Get(ctx, w.Key(name), obj)
		if !apierrors.IsNotFound(err) {
			g.Expect(err).NotTo(HaveOccurred())
		}
		return err == nil
	}
}

// setPodPhase acts as a kubelet. It sets the phase of the Pods with the given label, and marks running Pods as ready.
func (w *env) setPodPhase(ctx context.Context, phase corev1.PodPhase, label, value string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(w.Client.List(ctx, pods, client.InNamespace(w.Namespace), client.MatchingLabels{label: value})).To(Succeed())
		g.Expect(pods.Items).NotTo(BeEmpty())
		for i := range pods.Items {
			pod := &pods.Items[i]
			pod.Status.Phase = phase
			if phase == corev1.PodRunning {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			g.Expect(w.Client.Status().Update(ctx, pod)).To(Succeed())
		}
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("Examples of the declarative guide", func() {
	It("the redis example has typed children, a status from their state, and a password that is generated once [R8, R34, R37, R38]", func(ctx SpecContext) {
		w := newEnv(ctx).run(redis.Args(local))
		w.createExample(ctx, "sessions")
		Eventually(w.Condition(ctx, "sessions", "Waiting")).WithTimeout(patience).Should(HaveValue(HaveField("Message", ContainSubstring("Redis is not ready"))))
		deployment, secret := &appsv1.Deployment{}, &corev1.Secret{}
		Eventually(w.object(ctx, "sessions-redis", deployment)).WithTimeout(patience).Should(BeTrue())
		w.setPodPhase(ctx, corev1.PodRunning, "app", "sessions-redis")
		Expect(w.finished(ctx, "sessions").Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.status(ctx, "sessions")).WithTimeout(patience).Should(And(
			HaveKeyWithValue("ready", true), HaveKeyWithValue("secret", "sessions-redis"), Not(HaveKey("message"))))
		Expect(w.object(ctx, "sessions-redis", secret)(NewGomega(Fail))).To(BeTrue())
		Expect(secret.Data["password"]).NotTo(BeEmpty())

		By("changing the item after a restart")
		w.Manager.Stop()
		w.run(redis.Args(local))
		w.updateAndStart(ctx, "sessions", redis.Config{Version: "8.4"})
		Eventually(func(g Gomega) string {
			g.Expect(w.object(ctx, "sessions-redis", deployment)(g)).To(BeTrue())
			return deployment.Spec.Template.Spec.Containers[0].Image
		}).WithTimeout(patience).Should(Equal("redis:8.4"))
		Eventually(func(g Gomega) {
			w.setPodPhase(ctx, corev1.PodRunning, "app", "sessions-redis")
			g.Expect(w.Get(ctx, "sessions").Status.Phase).To(Equal(phases.Succeeded))
		}).WithTimeout(patience).Should(Succeed())
		again := &corev1.Secret{}
		Expect(w.object(ctx, "sessions-redis", again)(NewGomega(Fail))).To(BeTrue())
		Expect(again.ResourceVersion).To(Equal(secret.ResourceVersion), "the password is the same, and was not even written")

		By("deleting the item")
		w.Delete(ctx, "sessions")
		Expect(w.object(ctx, "sessions-redis", secret)(NewGomega(Fail))).To(BeFalse())
		Expect(w.object(ctx, "sessions-redis", deployment)(NewGomega(Fail))).To(BeFalse())
	}, SpecTimeout(8*time.Minute))

	It("the licence example reports errors of validation and of a web service in the status, and changes no child [R9, R20, R24, R44]", func(ctx SpecContext) {
		down := atomic.Bool{}
		service := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case down.Load():
				rw.WriteHeader(http.StatusServiceUnavailable)
			default:
				_, _ = rw.Write([]byte("key of " + r.URL.Path))
			}
		}))
		DeferCleanup(service.Close)
		w := newEnv(ctx).run(licence.Args(service.URL, local))
		secret := &corev1.Secret{}

		By("stopping the service")
		down.Store(true)
		w.createExample(ctx, "acme")
		Eventually(w.status(ctx, "acme")).WithTimeout(patience).Should(HaveKeyWithValue("error", ContainSubstring("the licence service answers 503")))
		Expect(w.Get(ctx, "acme").Status.Phase.IsFinal()).To(BeFalse())
		Expect(w.object(ctx, "acme-licence", secret)(NewGomega(Fail))).To(BeFalse())

		By("starting the service again")
		down.Store(false)
		Expect(w.finished(ctx, "acme").Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.status(ctx, "acme")).WithTimeout(patience).Should(And(HaveKeyWithValue("customer", "acme-12"), Not(HaveKey("error"))))
		Expect(w.object(ctx, "acme-licence", secret)(NewGomega(Fail))).To(BeTrue())
		Expect(secret.Data).To(HaveKeyWithValue("licence", []byte("key of /licences/acme-12")))

		By("requesting an unknown customer")
		w.updateAndStart(ctx, "acme", licence.Config{Customer: "ACME"})
		Eventually(func() lsv1alpha1.DeployItemPhase { return w.Get(ctx, "acme").Status.Phase }).WithTimeout(patience).Should(Equal(phases.Failed))
		Expect(w.status(ctx, "acme")(NewGomega(Fail))).To(And(
			HaveKeyWithValue("error", ContainSubstring(`"ACME" is not a customer`)), HaveKeyWithValue("customer", "acme-12")))
		again := &corev1.Secret{}
		Expect(w.object(ctx, "acme-licence", again)(NewGomega(Fail))).To(BeTrue())
		Expect(again.ResourceVersion).To(Equal(secret.ResourceVersion))

		By("deleting the item")
		w.Delete(ctx, "acme")
		Expect(w.object(ctx, "acme-licence", secret)(NewGomega(Fail))).To(BeFalse())
	}, SpecTimeout(8*time.Minute))

	It("the batch example waits for the end of its Job before it deletes the item [R2, Rx9]", func(ctx SpecContext) {
		w := newEnv(ctx).run(batch.Args(local))
		w.createExample(ctx, "nightly")
		job := &batchv1.Job{}
		Eventually(w.object(ctx, "nightly-batch", job)).WithTimeout(patience).Should(BeTrue())
		w.setPodPhase(ctx, corev1.PodSucceeded, batchv1.ControllerUidLabel, string(job.UID))
		Expect(w.finished(ctx, "nightly").Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.status(ctx, "nightly")).WithTimeout(patience).Should(HaveKeyWithValue("job", "Complete"))

		By("changing the image, which creates another Job")
		first := job.UID
		w.updateAndStart(ctx, "nightly", batch.Config{Image: "example.org/reports:2.0"})
		Eventually(func(g Gomega) {
			g.Expect(w.object(ctx, "nightly-batch", job)(g)).To(BeTrue())
			g.Expect(job.UID).NotTo(Equal(first))
			g.Expect(job.Spec.Template.Spec.Containers[0].Image).To(Equal("example.org/reports:2.0"))
		}).WithTimeout(patience).Should(Succeed())

		By("deleting the item while the Job runs")
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("nightly"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("nightly"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.Condition(ctx, "nightly", "Waiting")).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", ContainSubstring("the Job must not be interrupted"))))
		Expect(w.object(ctx, "nightly-batch", job)(NewGomega(Fail))).To(BeTrue())
		Expect(job.DeletionTimestamp).To(BeNil())
		w.setPodPhase(ctx, corev1.PodSucceeded, batchv1.ControllerUidLabel, string(job.UID))
		gone, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		Expect(w.Landscaper.WaitForDeletion(gone, w.Key("nightly"))).To(Succeed())
		Expect(w.object(ctx, "nightly-batch", job)(NewGomega(Fail))).To(BeFalse())
	}, SpecTimeout(8*time.Minute))
})
