// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/faultnet"
)

type configMapObject = corev1.ConfigMap

// statefulHandler is a handler that counts its calls in memory. It is safe for concurrent use.
type statefulHandler struct {
	client *http.Client
	calls  atomic.Int64
}

// Sync implements declarative.Handler.
func (s *statefulHandler) Sync(ctx context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	s.calls.Add(1)
	return handleWithCounts(ctx, req)
}

var _ = Describe("Request of a handler", func() {
	It("a request contains only children of its item, and an item is never handled twice at once [R4, R32, R42, R43]", func(ctx SpecContext) {
		handler := newRecordingHandler(&statefulHandler{client: &http.Client{}})
		w := newEnv(ctx, configMapKind).start(handler)
		const items = 20
		for i := range items {
			w.Create(ctx, fmt.Sprint("item-", i), config(map[string]map[string]string{fmt.Sprint("a-", i): {}, fmt.Sprint("b-", i): {}}))
		}
		for i := range items {
			name := fmt.Sprint("item-", i)
			Eventually(w.status(ctx, name)).WithTimeout(patience).Should(HaveKeyWithValue("seen", object{fmt.Sprint("a-", i): "", fmt.Sprint("b-", i): ""}))
		}
		w.WaitUntilQuiet(ctx)
		handler.mu.Lock()
		defer handler.mu.Unlock()
		Expect(handler.most).To(Equal(1))
		for i := range items {
			for _, req := range handler.calls[fmt.Sprint("item-", i)] {
				for _, child := range req.Children {
					Expect(child.Name()).To(BeElementOf(fmt.Sprint("a-", i), fmt.Sprint("b-", i)))
				}
			}
		}
	}, SpecTimeout(5*time.Minute))

	It("a request contains all children of the configured kinds as complete objects [R5, R6]", func(ctx SpecContext) {
		handler := newRecordingHandler(newHandler(
			configMap("map", data{"key": "1"}),
			object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "secret"}, "stringData": object{"password": "x"}},
			object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "service"}, "spec": object{"ports": []any{object{"port": 80}}}},
		))
		w := newEnv(ctx, configMapKind, secretKind, serviceKind).start(handler)
		w.CreateAndRun(ctx, "item", config(nil))
		Eventually(func() int { return len(handler.last("item").Children) }).WithTimeout(patience).Should(Equal(3))
		req := handler.last("item")
		service, found, err := declarative.Find[corev1.Service](req.Children, "Service", "service")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeTrue())
		live := &corev1.Service{}
		Expect(w.Client.Get(ctx, w.Key("service"), live)).To(Succeed())
		Expect(service.Spec).To(Equal(live.Spec), "the handler receives the fields that the API server has set")
		Expect(service.ManagedFields).To(BeEmpty())
		secret, _ := req.Children.Find("Secret", "secret")
		Expect(secret.GetString("data", "password")).To(Equal("eA=="))
		Expect(string(req.Raw)).To(ContainSubstring(`"apiVersion":"example.com/v1"`))
		Expect(req.Target.Name).To(Equal("cluster"))
		Expect(req.Target.Spec.Configuration).To(BeNil(), "no credentials")
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Children", func() {
	It("writes as many children at once as Concurrency allows [F32]", func(ctx SpecContext) {
		const concurrency = 3
		w := newEnv(ctx, configMapKind)
		w.options.Concurrency = concurrency
		var now, most atomic.Int64
		met := make(chan struct{}) // closed when as many writes as allowed take place at the same time
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Resource == "configmaps" && r.Verb == "patch" },
			func(req *http.Request) (*http.Response, error) {
				n := now.Add(1)
				defer now.Add(-1)
				if before := most.Load(); n > before && most.CompareAndSwap(before, n) && n == concurrency {
					close(met)
				}
				select {
				case <-met:
				case <-req.Context().Done():
				}
				return nil, nil
			}))
		w.start(declarative.HandlerFunc(handleWithFixedStatus))
		maps := map[string]data{}
		for i := range 4 * concurrency {
			maps[fmt.Sprint("a-", i)] = data{"key": "1"}
		}
		w.Create(ctx, "item", config(maps))
		Eventually(met).WithContext(ctx).WithTimeout(patience).Should(BeClosed(), func() string { return fmt.Sprint("at most ", most.Load()) })
		Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		Expect(most.Load()).To(BeEquivalentTo(concurrency))
	}, SpecTimeout(5*time.Minute))

	It("neither changes nor creates children that specify only their name [R28, R29]", func(ctx SpecContext) {
		keep := atomic.Bool{}
		missing := atomic.Bool{}
		w := newEnv(ctx, configMapKind).start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			response := &declarative.SyncResponse{Children: []any{configMap("b", data{"key": "1"})}}
			minimal := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a"}}
			if keep.Load() {
				response.Children = append(response.Children, minimal)
			} else {
				response.Children = append(response.Children, configMap("a", data{"key": "1"}))
			}
			if missing.Load() {
				response.Children = append(response.Children, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "never"}})
			}
			return response, nil
		}))
		w.CreateAndRun(ctx, "item", config(nil))
		w.WaitUntilQuiet(ctx)
		keep.Store(true)
		w.RunAgain(ctx, "item")
		before := w.Counter.Snapshot()
		w.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Data["key"] = "by hand" })
		w.RunAgain(ctx, "item")
		w.WaitUntilQuiet(ctx)
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		Expect(w.Read(ctx, "a").Data).To(Equal(data{"key": "by hand"}))
		Expect(w.Read(ctx, "a").Labels).To(HaveKey(ownership.LabelItem))

		By("returning a child that does not exist")
		missing.Store(true)
		Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.Condition(ctx, "item", declarative.ConditionChildMissing)).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", ContainSubstring(w.Namespace+"/never"))))
		Expect(w.Read(ctx, "never")).To(BeNil())
		missing.Store(false)
		w.RunAgain(ctx, "item")
		Expect(w.Condition(ctx, "item", declarative.ConditionChildMissing)(NewGomega(Fail))).To(BeNil())

		By("returning the whole child again")
		keep.Store(false)
		w.RunAgain(ctx, "item")
		Expect(w.Read(ctx, "a").Data).To(Equal(data{"key": "1"}))

		By("deleting the item")
		keep.Store(true)
		w.RunAgain(ctx, "item")
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "a")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("sets tracking labels on children, and a controller reference where the item can own the child [Rx5]", func(ctx SpecContext) {
		other := &corev1.Namespace{}
		other.GenerateName = "declarative-"
		w := newEnv(ctx, configMapKind)
		Expect(w.Client.Create(ctx, other)).To(Succeed())
		w.options.Tracking = &declarative.Tracking{OwnerReference: true}
		w.options.Namespaces = []string{w.Namespace, other.Name}
		there := configMap("there", data{"key": "1"})
		there["metadata"] = object{"name": "there", "namespace": other.Name}
		w.start(newHandler(configMap("here", data{"key": "1"}), there))
		di := w.CreateAndRun(ctx, "item", config(nil))
		here := w.Read(ctx, "here")
		Expect(here.Labels).To(And(
			HaveKeyWithValue("app.kubernetes.io/instance", string(di.UID)),
			HaveKeyWithValue("app.kubernetes.io/managed-by", "echo.deployer.example.com"),
		))
		Expect(metav1.GetControllerOf(here)).To(HaveValue(And(HaveField("UID", di.UID), HaveField("Kind", "DeployItem"))))
		abroad := &corev1.ConfigMap{}
		key := w.Key("there")
		key.Namespace = other.Name
		Expect(w.Client.Get(ctx, key, abroad)).To(Succeed())
		Expect(abroad.OwnerReferences).To(BeEmpty(), "an item cannot own an object in another namespace")
		Expect(abroad.Labels).To(HaveKeyWithValue("app.kubernetes.io/instance", string(di.UID)))
		w.Delete(ctx, "item")
		Expect(w.Read(ctx, "here")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("reports a handler that returns another child at each call, names the field, and calls it less often [R33]", func(ctx SpecContext) {
		n := atomic.Int64{}
		handler := newRecordingHandler(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return &declarative.SyncResponse{Children: []any{configMap("a", data{"key": "1", "time": fmt.Sprint(n.Add(1))})}}, nil
		}))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(nil))
		Eventually(w.Condition(ctx, "item", declarative.ConditionUnstableHandler)).WithTimeout(patience).Should(
			HaveValue(HaveField("Message", And(ContainSubstring("data[time]"), ContainSubstring("a"), Not(ContainSubstring("key"))))))
		Eventually(w.listEvents(ctx, "UnstableHandler")).WithTimeout(patience).Should(ContainElement(And(HavePrefix("Warning item"), ContainSubstring("data[time]"))))
		calls := handler.getCallCount("item")()
		// At most two calls in two seconds, and each is repeated once.
		Consistently(handler.getCallCount("item")).WithTimeout(2 * time.Second).Should(BeNumerically("<=", calls+4))
	}, SpecTimeout(5*time.Minute))

	It("accepts a handler that counts in a child, and does not call it less often [F75]", func(ctx SpecContext) {
		const steps = 8
		counted := func(child declarative.Child) int {
			n, _ := strconv.Atoi(child.GetString("data", "n"))
			return n
		}
		handler := newRecordingHandler(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			child, _ := req.Children.Find("ConfigMap", "a")
			return &declarative.SyncResponse{Children: []any{configMap("a", data{"n": strconv.Itoa(min(counted(child)+1, steps))})}}, nil
		}))
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(nil))
		began := time.Now()
		Eventually(w.Data(ctx, "a")).WithTimeout(patience).Should(HaveField("Data", HaveKeyWithValue("n", strconv.Itoa(steps))))
		took := time.Since(began)
		GinkgoWriter.Println(steps, "steps took", took)
		Expect(took).To(BeNumerically("<", 4*steps*time.Second)) // an unstable handler is called after 1, 2, 4, 8, 16 and 32 s
		w.WaitUntilQuiet(ctx)
		Expect(w.Condition(ctx, "item", declarative.ConditionUnstableHandler)(NewWithT(GinkgoTB()))).To(BeNil())
		Expect(w.listEvents(ctx, "UnstableHandler")(NewWithT(GinkgoTB()))).To(BeEmpty())
		_, writes := w.GetRequestCounts(nil)
		Expect(writes).To(Equal(steps), "requests: %s", w.Counter.Snapshot())
	}, SpecTimeout(5*time.Minute))
})
