// SPDX-License-Identifier: Apache-2.0

package mock_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// config returns a configuration of the mock deployer with the given fields.
func config(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"` + fields + "}"
}

const ns = metav1.NamespaceDefault

// env contains a simulated Landscaper and the mock deployer for its items.
type env struct {
	ls       *landscapertest.Landscaper
	requests *faultnet.Counter
	prefix   string // prefix of the names of the items
	revision contract.Revision
}

// start creates a simulated Landscaper that follows the given revision, and runs the mock deployer. The field
// `requests` counts the requests of the deployer.
func start(revision contract.Revision, controller *mockv1alpha1.Configuration) *env {
	GinkgoHelper()
	w := &env{requests: &faultnet.Counter{}, prefix: string(revision) + "-", revision: revision}
	w.ls = landscapertest.NewLandscaper(c, world.RevisionOf(revision).ToLandscaperOptions())
	landscapertest.StartManager(GinkgoTB(), w.requests.Wrap(cp.Config), mock.Args(controller), landscapertest.WithLog(GinkgoLogr))
	return w
}

func (w *env) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: ns, Name: w.prefix + name}
}

// createAndStart creates an item and requests its first run.
func (w *env) createAndStart(ctx context.Context, name, fields string, change ...func(*lsv1alpha1.DeployItem)) types.NamespacedName {
	GinkgoHelper()
	di := w.ls.Item(ns, w.prefix+name, mock.Type, config(fields))
	for _, f := range change {
		f(di)
	}
	Expect(w.ls.Deploy(ctx, di)).To(Succeed())
	return w.key(name)
}

// updateAndStart replaces the configuration of an item and requests another run.
func (w *env) updateAndStart(ctx context.Context, item types.NamespacedName, fields string) {
	GinkgoHelper()
	replace := fmt.Sprintf(`[{"op":"replace","path":"/spec/config","value":%s}]`, config(fields))
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name}}
	Expect(c.Patch(ctx, di, client.RawPatch(types.JSONPatchType, []byte(replace)))).To(Succeed())
	Expect(world.RevisionOf(w.revision).Request(ctx, w.ls, item)).To(Succeed())
}

// finished waits until the run of an item has ended.
func (w *env) finished(ctx context.Context, item types.NamespacedName) *lsv1alpha1.DeployItem {
	GinkgoHelper()
	di, err := w.ls.WaitUntilFinished(ctx, item)
	Expect(err).NotTo(HaveOccurred())
	return di
}

// getExportSecret reads the export Secret of an item. It returns nil if there is none.
func getExportSecret(ctx context.Context, item types.NamespacedName) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	err := c.Get(ctx, types.NamespacedName{Namespace: ns, Name: item.Name + "-export"}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return secret
}

// statusWrites returns the number of writes to the status of an item.
func (w *env) statusWrites(item types.NamespacedName) int {
	return w.requests.Snapshot()[faultnet.Request{
		Verb: "patch", Resource: "deployitems", Subresource: "status", Namespace: ns, Name: item.Name,
	}]
}

var _ = Describe("Mock deployer", func() {
	for _, revision := range []contract.Revision{contract.RevisionAnnotation, contract.RevisionJobID} {
		Context(fmt.Sprintf("under the %s revision", revision), Ordered, ContinueOnFailure, func() {
			var w *env
			BeforeAll(func() { w = start(revision, nil) })
			describePhases(&w)
			describeExports(&w)
			describeConfigErrors(&w)
			describeWrites(&w)
		})
	}
	describeTargets()
})

// describePhases defines the specs of the promises D1 and D6 in docs/behaviours.md.
func describePhases(of **env) {
	var w *env
	BeforeEach(func() { w = *of })

	It("succeeds by default [D1]", func(ctx SpecContext) {
		Expect(w.finished(ctx, w.createAndStart(ctx, "plain", "")).Status.Phase).To(BeEquivalentTo("Succeeded"))
	})

	It("sets the phase of the configuration [D1]", func(ctx SpecContext) {
		di := w.finished(ctx, w.createAndStart(ctx, "failed", `"phase":"Failed"`))
		Expect(di.Status.Phase).To(BeEquivalentTo("Failed"))
		w.updateAndStart(ctx, client.ObjectKeyFromObject(di), `"phase":"Succeeded"`)
		Expect(w.finished(ctx, client.ObjectKeyFromObject(di))).To(hasPhase("Succeeded"))
	})

	It("sets the initial phase at the first call of each job, and keeps the phase after that [D1]", func(ctx SpecContext) {
		item := w.createAndStart(ctx, "initial", `"initialPhase":"Progressing"`)
		_, err := w.ls.WaitForPhase(ctx, item, "Progressing")
		Expect(err).NotTo(HaveOccurred())
		before := w.requests.Snapshot()
		Consistently(ctx, w.ls.Get).WithArguments(ctx, item).WithTimeout(10 * landscapertest.ShortPoll).Should(hasPhase("Progressing"))
		Expect(w.requests.Snapshot().Since(before).ForObject("deployitems", ns, item.Name).OnlyWrites().Sum()).To(BeZero(), "polls write nothing")
		w.updateAndStart(ctx, item, `"phase":"Succeeded"`)
		Expect(w.finished(ctx, item)).To(hasPhase("Succeeded"))
		w.updateAndStart(ctx, item, `"initialPhase":"Failed"`)
		Expect(w.finished(ctx, item)).To(hasPhase("Failed"))
	})

	It("receives further calls in the phase Progressing until the timeout ends the run [D1] [H-3]", func(ctx SpecContext) {
		item := w.createAndStart(ctx, "endless", `"phase":"Progressing"`, func(di *lsv1alpha1.DeployItem) {
			di.Spec.Timeout = &lsv1alpha1.Duration{Duration: 6 * time.Second}
		})
		_, err := w.ls.WaitForPhase(ctx, item, "Progressing")
		Expect(err).NotTo(HaveOccurred())
		di := w.finished(ctx, item)
		Expect(di.Status.Phase).To(BeEquivalentTo("Failed"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorTimeout))
	})

	It("aborts a run, and keeps the exports [D6]", func(ctx SpecContext) {
		item := w.createAndStart(ctx, "aborted", `"phase":"Progressing","export":{"a":1}`)
		_, err := w.ls.WaitForPhase(ctx, item, "Progressing")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.ls.SetOperation(ctx, item, contract.AbortOperation)).To(Succeed())
		di := w.finished(ctx, item)
		Expect(di.Status.Phase).To(BeEquivalentTo("Failed"))
		Expect(di.Status.LastError.Reason).To(Equal(contract.AbortedReason))
		Eventually(ctx, w.ls.Get).WithArguments(ctx, item).Should(HaveField("Annotations", Not(HaveKey(lsv1alpha1.OperationAnnotation))))
		Expect(getExportSecret(ctx, item)).NotTo(BeNil())
	})
}

// hasPhase returns a matcher for items in a phase.
func hasPhase(phase lsv1alpha1.DeployItemPhase) OmegaMatcher { return HaveField("Status.Phase", phase) }

// describeExports defines the specs of the promises D2 and D3 in docs/behaviours.md.
func describeExports(of **env) {
	var w *env
	BeforeEach(func() { w = *of })

	It("copies the provider status, and writes the export to a Secret of the item [D2]", func(ctx SpecContext) {
		item := w.createAndStart(ctx, "export", `"providerStatus":{"apiVersion":"example.com/v1","kind":"S","n":1},"export":{"b":2,"a":[1]}`)
		di := w.finished(ctx, item)
		Expect(di.Status.ProviderStatus.Raw).To(MatchJSON(`{"apiVersion":"example.com/v1","kind":"S","n":1}`))
		Expect(di.Status.ExportReference).To(PointTo(Equal(lsv1alpha1.ObjectReference{Namespace: ns, Name: item.Name + "-export"})))
		secret := getExportSecret(ctx, item)
		Expect(secret.Data).To(HaveKeyWithValue(lsv1alpha1.DataObjectSecretDataKey, MatchJSON(`{"b":2,"a":[1]}`)))
		Expect(secret.OwnerReferences).To(ConsistOf(And(HaveField("UID", di.UID), HaveField("Kind", "DeployItem"))))

		w.updateAndStart(ctx, item, `"export":{"a":7}`)
		w.finished(ctx, item)
		Expect(getExportSecret(ctx, item).Data).To(HaveKeyWithValue(lsv1alpha1.DataObjectSecretDataKey, MatchJSON(`{"a":7}`)))
		Expect(w.ls.Delete(ctx, item)).To(Succeed())
		Expect(getExportSecret(ctx, item)).To(BeNil(), "Delete removes it [D3]")
	})

	It("deletes an item whose export Secret does not exist [D3]", func(ctx SpecContext) {
		item := w.createAndStart(ctx, "lost", `"export":{"a":1}`)
		w.finished(ctx, item)
		Expect(c.Delete(ctx, getExportSecret(ctx, item))).To(Succeed())
		Expect(w.ls.Delete(ctx, item)).To(Succeed())
	})

	It("refuses to write to a Secret of another owner, and leaves this Secret when the item is deleted [D2] [D3]", func(ctx SpecContext) {
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.key("foreign").Name + "-export"}}
		Expect(c.Create(ctx, foreign)).To(Succeed())
		item := w.createAndStart(ctx, "foreign", `"export":{"a":1}`)
		di := w.finished(ctx, item)
		Expect(di.Status.Phase).To(BeEquivalentTo("Failed"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorConfigurationProblem))
		Expect(w.ls.Delete(ctx, item)).To(Succeed())
		Expect(getExportSecret(ctx, item).Data).To(BeEmpty())
	})
}

// describeConfigErrors defines the specs of the promise D4 in docs/behaviours.md.
func describeConfigErrors(of **env) {
	DescribeTable("fails an item with an invalid configuration, and the error names the path of the field [D4]", func(ctx SpecContext, name, fields, path string) {
		w := *of
		item := w.createAndStart(ctx, "wrong-"+name, fields)
		di := w.finished(ctx, item)
		Expect(di.Status.Phase).To(BeEquivalentTo("Failed"))
		Expect(di.Status.LastError.Codes).To(ContainElement(lsv1alpha1.ErrorConfigurationProblem))
		Expect(di.Status.LastError.Message).To(ContainSubstring(path))
		Expect(di.Status.Conditions).To(ContainElement(And(
			HaveField("Type", mock.ValidationCondition), HaveField("Status", lsv1alpha1.ConditionFalse), HaveField("Message", ContainSubstring(path)),
		)))

		w.updateAndStart(ctx, item, "")
		Expect(w.finished(ctx, item)).To(And(hasPhase("Succeeded"), HaveField("Status.LastError", BeNil()),
			HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", mock.ValidationCondition), HaveField("Status", lsv1alpha1.ConditionTrue),
			)))))
	},
		Entry("the configuration has an unknown field", "field", `"phaze":"Failed"`, `spec.config: unknown field "phaze"`),
		Entry("the phase is unknown", "phase", `"phase":"Done"`, "spec.config.phase"),
		Entry("the provider status has no kind", "status", `"providerStatus":{"n":1}`, "spec.config.providerStatus"),
		Entry("the configuration has two schedules", "schedule", `"continuousReconcile":{"every":"1m","cron":"@daily"}`, "spec.config.continuousReconcile"),
	)
}

// describeWrites defines the specs of the promise D7 in docs/behaviours.md.
func describeWrites(of **env) {
	It("writes the status once per run, besides its start [D7]", func(ctx SpecContext) {
		w := *of
		all := `"providerStatus":{"apiVersion":"v1","kind":"S","n":%d},"export":{"n":%d}`
		item := w.createAndStart(ctx, "counted", fmt.Sprintf(all, 1, 1))
		w.finished(ctx, item)
		Expect(w.statusWrites(item)).To(Equal(2), "start and outcome\n%s", w.requests.Snapshot().ForObject("deployitems", ns, item.Name))
		w.updateAndStart(ctx, item, fmt.Sprintf(all, 2, 2))
		Expect(w.finished(ctx, item).Status.ProviderStatus.Raw).To(ContainSubstring(`"n":2`))
		Expect(w.statusWrites(item)).To(Equal(4), "start and outcome\n%s", w.requests.Snapshot().ForObject("deployitems", ns, item.Name))
	})

	It("reconciles an item on its schedule, with the writes of one run [D7]", func(ctx SpecContext) {
		w := *of
		item := w.createAndStart(ctx, "scheduled", `"continuousReconcile":{"every":"1s"}`)
		di := w.finished(ctx, item)
		Eventually(ctx, w.ls.Get).WithArguments(ctx, item).WithTimeout(10 * time.Second).
			Should(HaveField("Status.LastReconcileTime.Time", BeTemporally(">", di.Status.LastReconcileTime.Add(time.Second))))
		Expect(w.ls.SetAnnotations(ctx, item, map[string]string{"continuousreconcile.extensions.landscaper.gardener.cloud/active": "false"})).To(Succeed())
		Expect(w.requests.Snapshot().ForObject("secrets", ns, item.Name+"-export").Sum()).To(BeZero())
	})
}

// describeTargets defines the specs of the promise D5 in docs/behaviours.md.
func describeTargets() {
	It("processes items whose Target the configuration of the deployer selects [D5]", func(ctx SpecContext) {
		w := start(contract.RevisionJobID, &mockv1alpha1.Configuration{Identity: "selective", TargetSelector: []lsv1alpha1.TargetSelector{{
			Labels: []lsv1alpha1.Requirement{{Key: "zone", Operator: selection.Equals, Values: []string{"eu"}}},
		}}})
		w.prefix = "selective-"
		on := func(target string) func(*lsv1alpha1.DeployItem) {
			return func(di *lsv1alpha1.DeployItem) {
				di.Spec.Target = &lsv1alpha1.ObjectReference{Namespace: ns, Name: target}
			}
		}
		for _, zone := range []string{"eu", "us"} {
			target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: zone, Labels: map[string]string{"zone": zone}}}
			target.Spec.Type, target.Spec.Configuration = "example.com/zone", lsv1alpha1.NewAnyJSONPointer([]byte(`"none"`))
			Expect(c.Create(ctx, target)).To(Succeed())
		}
		foreign := w.createAndStart(ctx, "us", "", on("us"))
		Expect(w.finished(ctx, w.createAndStart(ctx, "eu", "", on("eu"))).Status.Deployer.Identity).To(Equal("selective"))
		Expect(w.finished(ctx, w.createAndStart(ctx, "none", "")).Status.Phase).To(BeEquivalentTo("Succeeded"))
		Consistently(ctx, w.ls.Get).WithArguments(ctx, foreign).WithTimeout(time.Second).Should(hasPhase(""))
		Expect(w.requests.Snapshot().ForObject("deployitems", ns, foreign.Name).Sum()).To(BeZero(), "it is not even read")
	})
}
