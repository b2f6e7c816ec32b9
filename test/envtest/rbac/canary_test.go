// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet"
)

// canaryItem is an item with secrets. The writes of these secrets fail.
type canaryItem struct {
	name, deployer, form string
	config               func(password string) map[string]any
}

// common contains the forms of quoting that are tried with every deployer. Only one deployer is tried with the other
// forms.
var common = []string{"json", "decoded", "conflict"}

// newItems returns one item for each combination of a deployer and a form of quoting that is tried.
func (w *env) newItems() []canaryItem {
	out := []canaryItem{}
	for _, form := range common {
		name := "mock-" + form
		out = append(out, canaryItem{name: name, deployer: "mock", form: form, config: func(password string) map[string]any {
			return newMockConfig(map[string]any{"export": map[string]any{"x": password}})
		}})
	}
	for deployer, config := range secretive {
		asked := common
		if deployer == "manifest" {
			asked = slices.Concat(slices.Collect(maps.Keys(forms)), slices.Collect(maps.Keys(silent)))
		}
		for _, form := range asked {
			name := deployer + "-" + form
			out = append(out, canaryItem{name: name, deployer: deployer, form: form, config: func(password string) map[string]any {
				return config(w.Namespace, name, password)
			}})
		}
	}
	return out
}

// newFaultRules returns rules that make writes fail. The rules cover the Secret of a victim in the target, its export
// Secret, and the item.
func (v *canaryItem) newFaultRules(password string) []faultnet.Rule {
	secret := map[string]any{"data": map[string]any{"x": base64.StdEncoding.EncodeToString([]byte(password))}}
	on := func(match faultnet.Match, known map[string]any) faultnet.Rule {
		fault, isSilent := silent[v.form]
		if !isSilent {
			fault = forms[v.form].toFault(known)
		}
		return faultnet.Rule{Name: v.name + " " + match.Verb, Match: match, Times: 2, Fault: fault, Optional: true}
	}
	return []faultnet.Rule{
		on(faultnet.Match{Verb: "patch", Resource: "secrets", Name: v.name}, nil),
		on(faultnet.Match{Verb: "delete", Resource: "secrets", Name: v.name}, secret),
		on(faultnet.Match{Verb: "create", Resource: "secrets", Name: v.name + "-export"}, nil),
		on(faultnet.Match{Verb: "update", Resource: "secrets", Name: v.name + "-export"}, nil),
		on(faultnet.Match{Verb: "delete", Resource: "secrets", Name: v.name + "-export"}, secret),
		on(faultnet.Match{Verb: "patch", Resource: "deployitems", Subresource: "status", Name: v.name}, v.config(password)),
		on(faultnet.Match{Verb: "patch", Resource: "deployitems", Name: v.name}, v.config(password)),
	}
}

var _ = Describe("Secret values", func() {
	It("values of all inputs appear in no output, also after failures", func(ctx SpecContext) {
		w := newEnv(ctx)
		victims := w.newItems()
		w.createUnusedSecrets(ctx)
		network := w.newNetwork(victims, canary+"1")
		w.updateTarget(ctx, network, "token-1")
		w.startAll(network)

		By("deploying the item")
		for _, v := range victims {
			di := w.Landscaper.Item(w.Namespace, v.name, w.typeOf(v.deployer), v.config(canary+"1"))
			di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
			Expect(w.Landscaper.Deploy(ctx, di)).To(Succeed())
		}
		w.waitUntilSucceeded(ctx, victims)

		By("causing drift")
		for _, v := range victims {
			w.updateSecret(ctx, v.name)
		}
		Eventually(w.listPasswords(ctx, victims)).WithTimeout(patience).Should(HaveEach(canary + "1"))
		Expect(findLeaks(w.listVisibleTexts(ctx))).To(BeEmpty())

		By("killing the process, starting another one, and changing the password under random faults")
		for _, v := range victims {
			Expect(w.Landscaper.Update(ctx, w.Key(v.name), v.config(canary+"2"))).To(Succeed())
			w.startJob(ctx, v.name)
		}
		network.Kill()
		w.Manager.Kill()
		Expect(findLeaks(w.listVisibleTexts(ctx))).To(BeEmpty())
		network = w.newNetwork(victims, canary+"2", faultnet.Chaos(7, faultnet.Match{Resource: "deployitems"}, 0.02).Rules...)
		w.updateTarget(ctx, network, "token-2")
		w.startAll(network)
		w.waitUntilSucceeded(ctx, victims)
		Eventually(w.listPasswords(ctx, victims)).WithTimeout(patience).Should(HaveEach(canary + "2"))
		Expect(findLeaks(w.listVisibleTexts(ctx))).To(BeEmpty())

		By("deleting the item")
		for _, v := range victims {
			Expect(w.Landscaper.MarkForDeletion(ctx, w.Key(v.name))).To(Succeed())
		}
		w.waitUntilDeleted(ctx)
		Expect(findLeaks(w.listVisibleTexts(ctx))).To(BeEmpty())
		Expect(logbook.String()).To(ContainSubstring("denied"), "the log contains the injected faults")
	}, SpecTimeout(5*time.Minute))
})

// newNetwork returns a network with the faults of all victims.
func (w *env) newNetwork(victims []canaryItem, password string, more ...faultnet.Rule) *faultnet.Network {
	GinkgoHelper()
	rules := []faultnet.Rule{}
	for i := range victims {
		rules = append(rules, victims[i].newFaultRules(password)...)
	}
	return faultnet.Start(GinkgoTB(), faultnet.Scenario{Seed: 7, Rules: append(rules, more...), Log: GinkgoLogr, MinHits: len(victims)})
}

// createUnusedSecrets creates Secrets that the deployers do not need: credentials of registries, and unused values in
// the Secret of a Target.
func (w *env) createUnusedSecrets(ctx context.Context) {
	GinkgoHelper()
	registry := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{
		corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths": {"example.org": {"password": %q}}}`, canary+"registry"),
	}}
	registry.Namespace, registry.Name = w.Namespace, "registry"
	Expect(w.Client.Create(ctx, registry)).To(Succeed())
	lsCtx := &lsv1alpha1.Context{}
	Expect(w.Client.Get(ctx, w.Key(lsv1alpha1.DefaultContextName), lsCtx)).To(Succeed())
	lsCtx.RegistryPullSecrets = []corev1.LocalObjectReference{{Name: registry.Name}}
	Expect(w.Client.Update(ctx, lsCtx)).To(Succeed())
}

// waitUntilSucceeded waits until every item has succeeded. When the job of an item fails, arrive starts another job for
// this item.
func (w *env) waitUntilSucceeded(ctx context.Context, victims []canaryItem) {
	GinkgoHelper()
	for _, v := range victims {
		Eventually(func(g Gomega) {
			di, err := w.Landscaper.Get(ctx, w.Key(v.name))
			g.Expect(err).NotTo(HaveOccurred())
			if di.Status.Phase == phases.Failed && di.Status.JobID == di.Status.JobIDFinished {
				_, err := w.Landscaper.Trigger(ctx, w.Key(v.name))
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(di.Status.Phase).To(Equal(phases.Succeeded), "%s: %+v", v.name, di.Status.LastError)
			g.Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
		}).WithContext(ctx).WithTimeout(2 * patience).WithPolling(100 * time.Millisecond).Should(Succeed())
	}
}

// waitUntilDeleted waits until all items are deleted. It creates a job for each item that has none.
func (w *env) waitUntilDeleted(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		left := &lsv1alpha1.DeployItemList{}
		g.Expect(w.Client.List(ctx, left, client.InNamespace(w.Namespace))).To(Succeed())
		texts := map[string]string{"log": logbook.String()}
		for i := range left.Items {
			di := &left.Items[i]
			status, err := json.Marshal(di.Status)
			g.Expect(err).NotTo(HaveOccurred())
			texts[di.Name] = string(status)
			if di.Status.JobID == di.Status.JobIDFinished {
				_, err := w.Landscaper.Trigger(ctx, client.ObjectKeyFromObject(di))
				g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			}
		}
		Expect(findLeaks(texts)).To(BeEmpty())
		g.Expect(left.Items).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(2 * patience).WithPolling(200 * time.Millisecond).Should(Succeed())
}

// updateSecret changes the Secret of an item in the target, if this Secret exists.
func (w *env) updateSecret(ctx context.Context, name string) {
	GinkgoHelper()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = w.Namespace, name
	err := w.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"data": {"x": "YnkgaGFuZA=="}}`)), client.FieldOwner("kubectl-edit"))
	Expect(client.IgnoreNotFound(err)).To(Succeed())
}

// listPasswords returns a function for Eventually that reads the passwords in the Secrets of the target.
func (w *env) listPasswords(ctx context.Context, victims []canaryItem) func(Gomega) []string {
	return func(g Gomega) []string {
		out := []string{}
		for _, v := range victims {
			secret := &corev1.Secret{}
			if v.deployer != "mock" {
				g.Expect(w.Client.Get(ctx, w.Key(v.name), secret)).To(Succeed())
				out = append(out, string(secret.Data["x"]))
			}
		}
		return out
	}
}
