// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"embed"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph"
)

//go:embed templates
var templates embed.FS

// newUnnamedConfigMap returns a function for a component. This function returns a ConfigMap without a name, so the
// library generates the name.
func newUnnamedConfigMap(data func(ctx context.Context) (map[string]string, error)) func(context.Context) (*corev1.ConfigMap, error) {
	return func(ctx context.Context) (*corev1.ConfigMap, error) {
		item, err := stategraph.Item(ctx)
		if err != nil {
			return nil, err
		}
		values, err := data(ctx)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: values,
			ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, GenerateName: "part-"},
		}, nil
	}
}

func getInstanceData(ctx context.Context) (map[string]string, error) {
	return map[string]string{"value": stategraph.Instance(ctx)}, nil
}

func getValueData(ctx context.Context) (map[string]string, error) {
	config, err := stategraph.Config[settings](ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"value": config.Value}, nil
}

func getNames(ctx context.Context) ([]string, error) {
	config, err := stategraph.Config[settings](ctx)
	if err != nil {
		return nil, err
	}
	return config.Names, nil
}

// listConfigMaps returns a function for Eventually that lists the ConfigMaps whose labels identify the given component
// and instance.
func (w *env) listConfigMaps(ctx context.Context, di *lsv1alpha1.DeployItem, component, instance string) func(Gomega) []corev1.ConfigMap {
	return func(g Gomega) []corev1.ConfigMap {
		list := &corev1.ConfigMapList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabelsSelector{Selector: stategraph.Selector(di.UID, component, instance)})).To(Succeed())
		return list.Items
	}
}

var _ = Describe("Objects of a graph", func() {
	It("objects are found by labels that name the component and the deploy item, regardless of their names [Y14, Y20, Y21, Y22, Y23, Y24, Y25]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().Add("one", stategraph.Object(newUnnamedConfigMap(getValueData))).Add("two", stategraph.Object(newUnnamedConfigMap(getValueData)))))
		short, long := "short", strings.Repeat("long-", 15)+"name"
		for _, name := range []string{short, long} {
			di := w.runSuccessfully(ctx, name, settings{Value: name})
			for _, component := range []string{"one", "two"} {
				all := w.listConfigMaps(ctx, di, component, "")(NewGomega(Fail))
				Expect(all).To(HaveLen(1))
				Expect(all[0].Data).To(HaveKeyWithValue("value", name))
				labels := all[0].Labels
				Expect(labels).To(And(
					HaveKeyWithValue("state.deployerkit.dev/component", component),
					HaveKeyWithValue("state.deployerkit.dev/parent-group", "landscaper.gardener.cloud"),
					HaveKeyWithValue("state.deployerkit.dev/parent-version", "v1alpha1"),
					HaveKeyWithValue("state.deployerkit.dev/parent-plural", "deployitems"),
					HaveKeyWithValue("state.deployerkit.dev/parent-namespace", w.Namespace),
					HaveKeyWithValue("state.deployerkit.dev/parent-uid", string(di.UID)),
				))
				if name == short {
					Expect(labels).To(HaveKeyWithValue("state.deployerkit.dev/parent-name", name))
				} else {
					Expect(labels["state.deployerkit.dev/parent-name"]).To(And(HavePrefix("long-"), HaveLen(63)))
					Expect(all[0].Annotations).To(HaveKeyWithValue("state.deployerkit.dev/parent-name", name))
				}
			}
		}
		By("changing the item, which updates the same object")
		di := w.ReadItem(ctx, short)(NewGomega(Fail))
		before := w.listConfigMaps(ctx, di, "one", "")(NewGomega(Fail))[0]
		Expect(w.Landscaper.Update(ctx, w.Key(short), newConfig(settings{Value: "changed"}))).To(Succeed())
		w.rerunSuccessfully(ctx, short)
		after := w.listConfigMaps(ctx, di, "one", "")(NewGomega(Fail))
		Expect(after).To(HaveLen(1))
		Expect(after[0].UID).To(Equal(before.UID))
		Expect(after[0].Data).To(HaveKeyWithValue("value", "changed"))
	}, SpecTimeout(5*time.Minute))

	It("a ForEach creates one object per element of a list, and deletes the objects of removed elements [Yx6]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		name := func(element string) string { return element }
		w.start(build(stategraph.NewBuilder().
			Add("each", stategraph.ForEach(getNames, name, stategraph.Object(newUnnamedConfigMap(getInstanceData)))).
			Add("behind", newConfigMap("behind"), "each")))
		di := w.runSuccessfully(ctx, "item", settings{Names: []string{"a", "b", "c"}})
		Expect(w.listConfigMaps(ctx, di, "each", "")(NewGomega(Fail))).To(HaveLen(3))
		b := w.listConfigMaps(ctx, di, "each", "b")(NewGomega(Fail))
		Expect(b).To(ConsistOf(HaveField("Data", HaveKeyWithValue("value", "b"))))
		Expect(w.Landscaper.Update(ctx, w.Key("item"), newConfig(settings{Names: []string{"d", "c"}}))).To(Succeed())
		w.rerunSuccessfully(ctx, "item")
		var left []string
		for _, one := range w.listConfigMaps(ctx, di, "each", "")(NewGomega(Fail)) {
			left = append(left, one.Labels[stategraph.LabelInstance])
		}
		Expect(left).To(ConsistOf("c", "d"))
	}, SpecTimeout(5*time.Minute))

	It("a ForEach creates and corrects the objects of all other elements if one element has an error [F78]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		each := stategraph.Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
			element, err := stategraph.Element[string](ctx)
			switch {
			case err != nil:
				return nil, err
			case element == "broken":
				return nil, deployerlib.NewConfigError("names", "the element has no value")
			case element == "invalid": // its namespace is missing
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "item-invalid"}}, nil
			}
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "item-" + element, Namespace: w.Namespace}, Data: map[string]string{"value": element}}, nil
		})
		name := func(element string) string { return element }
		w.start(build(stategraph.NewBuilder().Add("each", stategraph.ForEach(getNames, name, each))))
		w.runSuccessfully(ctx, "item", settings{Names: []string{"a", "later"}})
		Expect(w.Landscaper.Update(ctx, w.Key("item"), newConfig(settings{Names: []string{"a", "b", "broken", "invalid"}}))).To(Succeed())
		di := w.RunAgain(ctx, "item")
		Expect(di.Status.Phase).To(Equal(phases.Failed))
		Expect(di.Status.LastError.Message).To(SatisfyAll(ContainSubstring(`instance "broken": `), ContainSubstring(`instance "invalid": `)))
		Expect(w.getValue(ctx, "item-b")(NewGomega(Fail))).To(Equal("b"))
		Expect(w.getValue(ctx, "item-later")(NewGomega(Fail))).To(Equal("later"), "nothing is deleted before the component is ready")
		w.updateValue(ctx, "item-a", "changed")
		w.RunAgain(ctx, "item")
		Expect(w.getValue(ctx, "item-a")(NewGomega(Fail))).To(Equal("a"))
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("a template renders an object, and the error about a missing value names the component and the file [Y16, Y17, Y26, Y27, Y28]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.start(build(stategraph.NewBuilder().
			Add("settings", stategraph.Versioned(newUnnamedConfigMap(getValueData))).
			Add("app", stategraph.Template(templates, "app.yaml"), "settings")))
		di := w.runSuccessfully(ctx, "item", settings{Value: "a: b"})
		settingsName := w.listConfigMaps(ctx, di, "settings", "")(NewGomega(Fail))[0].Name
		Expect(w.listConfigMaps(ctx, di, "app", "")(NewGomega(Fail))).To(ConsistOf(And(
			HaveField("Name", "item-app"), HaveField("Data", Equal(map[string]string{"value": "a: b", "settings": settingsName})))))

		w.begin(ctx, "lacking", map[string]any{"names": []string{"a"}})
		Eventually(w.ReadItem(ctx, "lacking")).WithTimeout(patience).Should(HaveField("Status.LastError.Message", And(
			ContainSubstring("component app: "), ContainSubstring("app.yaml"), ContainSubstring("value"))))
	}, SpecTimeout(5*time.Minute))

	It("a graph needs no other rights in the target than those that it lists [Yx5]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		rules, err := newGaleraGraph().RBAC()
		Expect(err).NotTo(HaveOccurred())
		w.CreateTarget(ctx, "narrow", w.createUser(ctx, "narrow", rules...))
		w.start(newGaleraGraph())
		w.begin(ctx, "galera", w.newGaleraConfig(1, "100"), onTarget("narrow"))
		w.createCertificates(ctx, "galera")
		di := w.waitUntilSucceeded(ctx, "galera")
		Expect(contract.GetCondition(di.Status.Conditions, "DriftDetection")).To(BeNil(), "all objects are watched")
		Expect(w.Landscaper.Delete(ctx, w.Key("galera"))).To(Succeed())
		Expect(w.hasObject(ctx, &appsv1.StatefulSet{}, "galera")).To(BeFalse())
	}, SpecTimeout(5*time.Minute))
})
