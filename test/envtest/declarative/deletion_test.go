// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/internal/testtime"
)

// cleaningHandler is a handler whose Finalize must be called several times.
type cleaningHandler struct {
	declarative.Handler

	mu    sync.Mutex
	calls int
	seen  []int // for each call of Finalize, the number of children that it received
	done  int   // Finalize reports success after this number of successful calls
	fails int   // number of calls that fail before the first successful call
}

// Finalize implements declarative.Finalizer.
func (c *cleaningHandler) Finalize(_ context.Context, req *declarative.SyncRequest) (*declarative.FinalizeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.seen = append(c.seen, len(req.Children))
	switch {
	case c.calls <= c.fails:
		return nil, errors.New("cannot clean up yet")
	case c.calls < c.done:
		return &declarative.FinalizeResponse{Status: object{"cleaning": c.calls}, Retry: 400 * time.Millisecond, Reason: "rubbish is left"}, nil
	}
	return &declarative.FinalizeResponse{Status: object{"cleaning": "over"}}, nil
}

func (c *cleaningHandler) getCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// watchingHandler is a handler whose Finalize waits until another client has set a field of a child.
type watchingHandler struct{ declarative.HandlerFunc }

// Finalize implements declarative.Finalizer.
func (*watchingHandler) Finalize(_ context.Context, req *declarative.SyncRequest) (*declarative.FinalizeResponse, error) {
	child, _ := req.Children.Find("ConfigMap", "a")
	response := &declarative.FinalizeResponse{Status: object{"seen": child.GetString("data", "seen")}}
	if child.GetString("data", "seen") != "four" {
		response.Retry = time.Hour
	}
	return response, nil
}

var _ = Describe("Deletion of an item", func() {
	It("calls Finalize instead of Sync until it is done, and then deletes the children [R1, R2, Rx9]", func(ctx SpecContext) {
		sync := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		handler := &cleaningHandler{Handler: sync, done: 4, fails: 1}
		w := newEnv(ctx, configMapKind).start(handler)
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		w.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Finalizers = []string{"example.com/held"} })
		w.WaitUntilQuiet(ctx)
		calls := sync.getCallCount("item")()
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.Condition(ctx, "item", "Waiting")).WithTimeout(patience).Should(HaveValue(HaveField("Message", ContainSubstring("rubbish is left"))))
		Expect(w.status(ctx, "item")(NewGomega(Fail))).To(HaveKey("cleaning"))
		Expect(w.Read(ctx, "b").DeletionTimestamp).To(BeNil(), "the children still exist")
		Eventually(handler.getCount).WithTimeout(patience).Should(Equal(4))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())

		By("waiting until the children are deleted, without another call")
		Eventually(w.status(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("cleaning", "over"))
		Consistently(handler.getCount).WithTimeout(time.Second).Should(Equal(4))
		w.UpdateConfigMap(ctx, "a", func(cm *configMapObject) { cm.Finalizers = nil })
		wait, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		Expect(w.Landscaper.WaitForDeletion(wait, w.Key("item"))).To(Succeed())
		Expect(handler.seen).To(HaveEach(2))
		Expect(sync.getCallCount("item")()).To(Equal(calls), "Sync is not called any more")
		Expect(w.Read(ctx, "a")).To(BeNil())
	}, SpecTimeout(5*time.Minute))

	It("calls Finalize again as soon as a child changes [Rx9]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind).start(&watchingHandler{HandlerFunc: handleWithFixedStatus})
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		for _, value := range []string{"one", "two", "three", "four"} {
			Eventually(w.Condition(ctx, "item", "Waiting")).WithTimeout(patience).Should(Not(BeNil()))
			w.setForeignField(ctx, "a", value)
			if value != "four" {
				Eventually(w.status(ctx, "item")).WithTimeout(testtime.ScaleTimeout(5 * time.Second)).Should(HaveKeyWithValue("seen", value))
			}
		}
		wait, cancel := context.WithTimeout(ctx, testtime.ScaleTimeout(5*time.Second))
		defer cancel()
		Expect(w.Landscaper.WaitForDeletion(wait, w.Key("item"))).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("leaves the children if OrphanChildren is set", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.options.OrphanChildren = true
		w.start(&cleaningHandler{Handler: declarative.HandlerFunc(handleWithFixedStatus), done: 1})
		w.CreateAndRun(ctx, "item", config(two))
		w.WaitUntilQuiet(ctx)
		before, a := w.Counter.Snapshot(), w.Read(ctx, "a")
		w.Delete(ctx, "item")
		_, writes := w.GetRequestCounts(before)
		Expect(writes).To(BeZero())
		Expect(w.Read(ctx, "a")).To(Equal(a))
		Expect(w.Read(ctx, "b")).NotTo(BeNil())

		By("creating an item with the same name, which finds the children")
		seen := newRecordingHandler(declarative.HandlerFunc(handleWithFixedStatus))
		w.Manager.Stop()
		w.start(seen)
		w.CreateAndRun(ctx, "item", config(two))
		Expect(w.Read(ctx, "a").UID).To(Equal(a.UID))
		Expect(seen.getFirstRequest("item").Children).To(HaveLen(2), "the first call after the restart receives the children")
	}, SpecTimeout(5*time.Minute))

	It("adds the finalizer to the item before it creates the first child [Rx6]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		protected, stored := false, false
		look := sync.OnceFunc(func() {
			di, err := w.Landscaper.Get(ctx, w.Key("item"))
			if err != nil {
				return
			}
			protected = contract.HasLandscaperFinalizer(di)
			stored = di.Status.ProviderStatus != nil && json.Valid(di.Status.ProviderStatus.Raw)
		})
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool {
			if r.Verb == "patch" {
				look()
			}
			return false
		}, nil))
		w.start(declarative.HandlerFunc(handleWithFixedStatus))
		w.CreateAndRun(ctx, "item", config(two))
		Expect(protected).To(BeTrue())
		Expect(stored).To(BeTrue(), "the deployer knows the children of the item")
		Expect(w.Read(ctx, "a").Labels).To(HaveKey(ownership.LabelItem))
	}, SpecTimeout(5*time.Minute))
})
