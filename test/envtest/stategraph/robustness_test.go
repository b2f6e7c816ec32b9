// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
)

// withoutTarget removes the Target from an item.
func withoutTarget(di *lsv1alpha1.DeployItem) { di.Spec.Target = nil }

// newDefinition is the body of a component. It returns a CustomResourceDefinition for the kind Sample, in an API group
// whose name contains the namespace of the item. The body `newSample` returns an object of this kind.
func newDefinition(ctx context.Context) (*apiextv1.CustomResourceDefinition, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	group := item.Namespace + ".test.deployerkit.dev"
	anything := &apiextv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "samples." + group},
		Spec: apiextv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextv1.NamespaceScoped, Names: apiextv1.CustomResourceDefinitionNames{Plural: "samples", Kind: "Sample"},
			Versions: []apiextv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			}},
		},
	}, nil
}

func newSample(ctx context.Context) (*unstructured.Unstructured, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": item.Namespace + ".test.deployerkit.dev/v1", "kind": "Sample",
		"metadata": map[string]any{"namespace": item.Namespace, "name": item.Name}, "spec": map[string]any{"size": int64(1)},
	}}, nil
}

var _ = Describe("Graph deployer", func() {
	It("a component creates an object of a kind that another component defines [Y3, Y4]", func(ctx SpecContext) {
		scheme, err := landscapertest.Scheme()
		Expect(err).NotTo(HaveOccurred())
		Expect(apiextv1.AddToScheme(scheme)).To(Succeed())
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().
			Add("sample", stategraph.Object(newSample), "definition").
			Add("definition", stategraph.Object(newDefinition, stategraph.WithScheme(scheme)))))
		w.runSuccessfully(ctx, "item", settings{})
		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("a graph without objects runs without a Target, and a graph with objects reports that the Target is missing", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		done, probe := newProbe(), newProbe()
		w.start(build(stategraph.NewBuilder().Add("outside", newDeleteRecorder(done)).Add("count", probe.newExternal(), "outside")))
		w.begin(ctx, "item", settings{}, withoutTarget)
		w.waitUntilSucceeded(ctx, "item")
		w.rerunSuccessfully(ctx, "item")
		Expect(probe.getCount("item")).To(Equal(2))
		Expect(w.Landscaper.Delete(ctx, w.Key("item"))).To(Succeed())
		Expect(done.listComponents()).To(Equal([]string{"outside"}))
		w.Manager.Stop()

		w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		w.begin(ctx, "objects", settings{}, withoutTarget)
		Eventually(w.ReadItem(ctx, "objects")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", ContainSubstring("spec.target: required")))
	}, SpecTimeout(5*time.Minute))

	It("the next process continues a graph after its predecessor was killed, and no object exists twice [Y35, Yx7]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.options.StartWithin = -1
		graph := func() *stategraph.Graph {
			b := stategraph.NewBuilder()
			for i, name := range newNames("part", 6) {
				b.Add(name, stategraph.Object(newUnnamedConfigMap(getValueData)), newNames("part", 6)[max(i-1, 0):i]...)
			}
			return build(b)
		}
		for kill := range 3 {
			name := newNames("item", 3)[kill]
			var writes atomic.Int32
			killed := make(chan struct{})
			w.Counter.SetInjector(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && writes.Add(1) == int32(kill*2+1) {
					close(killed)
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return nil, nil
			})
			w.start(graph())
			w.begin(ctx, name, settings{Value: name})
			Eventually(killed).WithTimeout(patience).Should(BeClosed())
			w.Manager.Kill()
			w.Counter.SetInjector(nil)
			w.start(graph())
			di := w.waitUntilSucceeded(ctx, name)
			Expect(w.listConfigMaps(ctx, di, "", "")(NewGomega(Fail))).To(HaveLen(6), "none twice")
			Expect(w.Landscaper.Delete(ctx, w.Key(name))).To(Succeed())
			Expect(w.listConfigMaps(ctx, di, "", "")(NewGomega(Fail))).To(BeEmpty())
			w.Manager.Stop()
		}
	}, SpecTimeout(5*time.Minute))

	It("reads the credentials again when the target rejects them for several components at once [H-15]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		refuse := faultnet.OnlyFirst(2, faultnet.ReturnStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
		w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Verb == "patch" }, refuse))
		w.start(build(stategraph.NewBuilder().Add("one", newConfigMap("one")).Add("two", newConfigMap("two"))))
		di := w.runSuccessfully(ctx, "item", settings{Value: "a"})
		Expect(w.listConfigMaps(ctx, di, "", "")(NewGomega(Fail))).To(HaveLen(2))
		Expect(di.Status.LastErrors).To(ConsistOf(HaveField("Message", And(ContainSubstring("component one"), ContainSubstring("component two")))))
	}, SpecTimeout(5*time.Minute))

	It("calls hooks that the author registers", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		recorder := &landscapertest.Recorder{}
		w.hooks = []extension.ReconcileExtensionHookSetup{{Hook: recorder.NewHook("mine"), HookTypes: []extension.HookType{extension.BeforeReconcileHook, extension.EndHook}}}
		w.start(build(stategraph.NewBuilder().Add("object", newConfigMap("object"))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		Expect(recorder.Types()).To(Equal([]extension.HookType{extension.BeforeReconcileHook, extension.EndHook}))
	}, SpecTimeout(5*time.Minute))

	It("counts the states of components in a metric that names no item [Yx9]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().Add("first", newSignedConfigMap("first")).Add("second", newConfigMap("second"), "first")))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(HaveKeyWithValue("second", "Blocked"))
		families, err := w.Manager.Registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		counts := map[string]float64{}
		for _, family := range families {
			if family.GetName() == "deployerkit_stategraph_component_states_total" {
				for _, m := range family.GetMetric() {
					counts[label(m, "component")+" "+label(m, "state")] = m.GetCounter().GetValue()
					Expect(m.GetLabel()).To(HaveLen(3), "component, state, deployer_type")
				}
			}
		}
		Expect(counts).To(And(HaveKey("first Progressing"), HaveKey("second Blocked"), HaveLen(2)))
	}, SpecTimeout(5*time.Minute))
})

// label returns the value of a label.
func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
