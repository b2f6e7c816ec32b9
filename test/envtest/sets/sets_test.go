// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/deployerkit/deployerkit/upkeep"
)

// set describes the expectations about a set in testdata.
type set struct {
	name string
	// uncertain contains the kinds that the condition ReadinessUnknown names.
	uncertain []string
	// filled contains fields that other programs fill, with the values that they must keep in all steps.
	filled []field
}

// field is a field of an object, and the value that is expected there.
type field struct {
	kind, name string // name has the prefix of the set's namespace if it begins with ":" or "-"
	path       []string
	value      types.GomegaMatcher
}

// sets returns all sets.
func sets() []set {
	webhook := func(kind, name string) field {
		return field{kind, name, []string{"webhooks", "0", "clientConfig", "caBundle"}, WithTransform(isBundle, BeTrue())}
	}
	conversion := func(name string) field {
		return field{"CustomResourceDefinition", name, []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}, WithTransform(isBundle, BeTrue())}
	}
	const validating, mutating = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
	return []set{
		{name: "certificates", filled: []field{
			{"ClusterRole", ":cluster-view", []string{"rules"}, HaveLen(1)},
			webhook(validating, "-webhook"), conversion("issuers"), conversion("certificates"),
		}},
		{name: "ingress", filled: []field{webhook(validating, "-admission")}},
		{name: "gitops", filled: []field{{"Secret", "gitops-secret", []string{"data"}, HaveKey("tls.crt")}}},
		{name: "pipelines", filled: []field{
			{"Secret", "webhook-certs", []string{"data"}, HaveKey("tls.crt")}, webhook(validating, "-webhook"), conversion("tasks"),
		}},
		{name: "monitoring", filled: []field{
			{"ClusterRole", ":aggregated-metrics", []string{"rules"}, HaveLen(1)},
			{"PersistentVolumeClaim", "dashboards", []string{"spec", "volumeName"}, Equal("set-monitoring-dashboards")},
			{"PersistentVolumeClaim", "unused", []string{"status", "phase"}, Equal("Pending")},
		}},
		{name: "mesh", uncertain: []string{"Gateway", "VirtualService"}, filled: []field{webhook(mutating, "-sidecar-injector")}},
		{name: "compositions", uncertain: []string{"ProviderConfig"}, filled: []field{conversion("compositions")}},
		{name: "serving", uncertain: []string{"Image"}, filled: []field{
			{"Secret", "serving-certs", []string{"data"}, HaveKey("tls.crt")}, webhook(validating, "-validation"), conversion("services"),
		}},
	}
}

func isBundle(value any) bool { return value == webhooks.bundle }

var _ = Describe("Manifest sets", Ordered, ContinueOnFailure, func() {
	var w *env
	BeforeAll(func(ctx SpecContext) { w = newEnv(ctx) })

	for _, s := range sets() {
		Describe("of the kind "+s.name, Ordered, func() {
			var p parameters
			BeforeAll(func() { p = parametersOf(s.name) })

			It("are installed with one write per object, and are ready [F76, F94, F97]", func(ctx SpecContext) {
				before := w.Counter.Snapshot()
				Expect(w.Deploy(ctx, s.name, p.config())).To(succeed())
				w.filled(ctx, p, s)
				w.AwaitQuiet(ctx)
				w.wantWrites(before, p, len(p.manifests()))
				w.wantUncertain(ctx, s)
			}, SpecTimeout(3*time.Minute))

			It("are not written when nothing has changed [F97]", func(ctx SpecContext) {
				before := w.Counter.Snapshot()
				Expect(w.Again(ctx, s.name)).To(succeed())
				w.AwaitQuiet(ctx)
				w.wantWrites(before, p, 0)
				w.filled(ctx, p, s)
				w.wantUncertain(ctx, s)
			}, SpecTimeout(3*time.Minute))

			It("are changed with one write for one change [F97]", func(ctx SpecContext) {
				before := w.Counter.Snapshot()
				p = p.changed()
				Expect(w.upgrade(ctx, p)).To(succeed())
				w.AwaitQuiet(ctx)
				w.wantWrites(before, p, 1)
				w.filled(ctx, p, s)
			}, SpecTimeout(3*time.Minute))

			It("are corrected with one write for each object that another client changed [F97]", func(ctx SpecContext) {
				w.corrects(ctx, p, p.manifests())
				w.filled(ctx, p, s)
			}, SpecTimeout(3*time.Minute))

			It("are upgraded to an API version while the old one is removed, and are then left alone [F70]", func(ctx SpecContext) {
				old := p
				p = p.upgraded()
				before := w.Counter.Snapshot()
				Expect(w.upgrade(ctx, p)).To(succeed())
				w.AwaitQuiet(ctx)
				w.wantUpgrade(ctx, before, old, p)
				w.filled(ctx, p, s)

				before = w.Counter.Snapshot()
				Expect(w.Again(ctx, s.name)).To(succeed())
				w.AwaitQuiet(ctx)
				w.wantWrites(before, p, 0)
				w.corrects(ctx, p, p.custom())
			}, SpecTimeout(3*time.Minute))
		})
	}

	Describe("that are deleted", Ordered, func() {
		BeforeAll(func(ctx SpecContext) {
			for _, s := range sets() { // all at once, because the deletion of a Namespace takes several seconds
				w.requestDeletion(ctx, s.name)
			}
		})

		for _, s := range sets() {
			It("leave nothing of the kind "+s.name+" behind [F70]", func(ctx SpecContext) {
				w.awaitDeleted(ctx, s.name)
				w.awaitNothingLeft(ctx, parametersOf(s.name))
			}, SpecTimeout(3*time.Minute))
		}
	})
})

// wantUncertain checks which kinds the condition ReadinessUnknown names.
func (w *env) wantUncertain(ctx context.Context, s set) {
	GinkgoHelper()
	condition := w.Condition(ctx, s.name, upkeep.ConditionReadinessUnknown)(NewGomega(Fail))
	if len(s.uncertain) == 0 {
		Expect(condition).To(BeNil())
		return
	}
	Expect(condition).NotTo(BeNil(), "the condition ReadinessUnknown is missing")
	Expect(condition.Status).To(Equal(lsv1alpha1.ConditionTrue))
	for _, kind := range s.uncertain {
		Expect(condition.Message).To(ContainSubstring(kind + "." + parametersOf(s.name).Group))
	}
}
