// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"context"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/managed"
)

// set describes the expectations about a set in testdata.
type set struct {
	name string
	// uncertain contains the kinds that the condition ReadinessUnknown names.
	uncertain []string
	// filled contains fields that other programs fill, with the values that they must keep in all steps.
	filled []field
	// deleted is an object that another client deletes, and changed is a change that it makes.
	deleted field
	changed edit
	// edits are changes of the manifests, in addition to that of the ConfigMap "settings".
	edits []edit
	// review describes a webhook that the API server asks about an object.
	review review
	// removes reports whether an upgrade removes the old version from the definitions. Otherwise, the version is not
	// served.
	removes bool
	// converts reports whether a webhook converts objects of the set.
	converts bool
}

// review describes a webhook.
type review struct {
	path   string                          // validate or mutate
	object func(parameters) map[string]any // an object that the webhook is asked about
}

// field is a field of an object, and the value that is expected there.
type field struct {
	kind, name string // name has the prefix of the set's namespace if it begins with ":" or "-"
	path       []string
	value      gomegatypes.GomegaMatcher
}

// newSets returns all sets.
func newSets() []set {
	webhook := func(kind, name string) field {
		return field{kind, name, []string{"webhooks", "0", "clientConfig", "caBundle"}, WithTransform(isBundle, BeTrue())}
	}
	conversion := func(name string) field {
		return field{"CustomResourceDefinition", name, []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}, WithTransform(isBundle, BeTrue())}
	}
	const validating, mutating = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
	custom := func(kind string) review {
		return review{"validate", func(p parameters) map[string]any {
			return map[string]any{"apiVersion": p.Group + "/" + p.Version, "kind": kind, "spec": map[string]any{}}
		}}
	}
	return []set{
		{
			name: "certificates", review: custom("Issuer"), converts: true,
			filled: []field{
				{"ClusterRole", ":cluster-view", []string{"rules"}, HaveLen(1)},
				webhook(validating, "-webhook"), conversion("issuers"), conversion("certificates"),
			},
			deleted: field{kind: validating, name: "-webhook"},
			changed: edit{"Certificate", "serving", []string{"spec", "duration"}, "1h"},
			edits:   []edit{{"CustomResourceDefinition", "issuers", []string{"spec", "names", "shortNames"}, []any{"iss"}}},
		},
		{
			name: "ingress", review: review{"validate", func(parameters) map[string]any {
				backend := map[string]any{"service": map[string]any{"name": "shop", "port": map[string]any{"number": int64(80)}}}
				return map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": map[string]any{"defaultBackend": backend}}
			}},
			filled:  []field{webhook(validating, "-admission")},
			deleted: field{kind: "ServiceAccount", name: "admission"},
			changed: edit{"Service", "controller", []string{"spec", "ports", "0", "targetPort"}, 8443},
		},
		{
			name:    "gitops",
			filled:  []field{{"Secret", "gitops-secret", []string{"data"}, HaveKey("tls.crt")}},
			deleted: field{kind: "Secret", name: "gitops-secret"},
			changed: edit{"NetworkPolicy", "server", []string{"spec", "podSelector", "matchLabels", "app"}, "other"},
			edits:   []edit{{"Deployment", "server", []string{"spec", "replicas"}, int64(2)}},
		},
		{
			name: "pipelines", review: custom("Task"), converts: true,
			filled: []field{
				{"Secret", "webhook-certs", []string{"data"}, HaveKey("tls.crt")}, webhook(validating, "-webhook"), conversion("tasks"),
			},
			deleted: field{kind: "Task", name: "clone"},
			changed: edit{"HorizontalPodAutoscaler", "webhook", []string{"spec", "maxReplicas"}, 3},
			edits:   []edit{{validating, "-webhook", []string{"webhooks", "0", "timeoutSeconds"}, int64(7)}},
		},
		{
			name: "monitoring", removes: true,
			filled: []field{
				{"ClusterRole", ":aggregated-metrics", []string{"rules"}, HaveLen(1)},
				{"PersistentVolumeClaim", "dashboards", []string{"spec", "volumeName"}, Equal("set-monitoring-dashboards")},
				{"PersistentVolumeClaim", "unused", []string{"status", "phase"}, Equal("Pending")},
			},
			deleted: field{kind: "ClusterRole", name: ":metrics"},
			changed: edit{"DaemonSet", "node-exporter", []string{"spec", "template", "spec", "containers", "0", "image"}, "other"},
		},
		{
			name: "mesh", uncertain: []string{"Gateway", "VirtualService"},
			review: review{"mutate", func(p parameters) map[string]any {
				return map[string]any{
					"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"labels": map[string]any{"injection": p.Namespace}},
					"spec": map[string]any{"containers": []any{map[string]any{"name": "shop", "image": "registry.example.com/shop:v1"}}},
				}
			}},
			filled:  []field{webhook(mutating, "-sidecar-injector")},
			deleted: field{kind: "Deployment", name: "pilot"},
			changed: edit{"Gateway", "public", []string{"spec", "servers", "0", "hosts", "0"}, "example.com"},
			edits:   []edit{{mutating, "-sidecar-injector", []string{"webhooks", "1", "timeoutSeconds"}, int64(7)}},
		},
		{
			name: "compositions", uncertain: []string{"ProviderConfig"}, converts: true,
			filled:  []field{conversion("compositions")},
			deleted: field{kind: "Composition", name: "-network"},
			changed: edit{"ProviderConfig", "-default", []string{"spec", "credentials", "source"}, "None"},
		},
		{
			name: "policies", review: review{"own", func(parameters) map[string]any {
				return map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
			}},
			filled: []field{
				webhook(validating, "-policies"), {"APIService", "v1.reports", []string{"status", "conditions", "0", "status"}, Equal("True")},
			},
			deleted: field{kind: "APIService", name: "v1.reports"},
			changed: edit{"Deployment", "admission", []string{"spec", "template", "spec", "containers", "0", "image"}, "other"},
		},
		{
			name: "serving", uncertain: []string{"Image"}, review: custom("Service"), converts: true,
			filled: []field{
				{"Secret", "serving-certs", []string{"data"}, HaveKey("tls.crt")}, webhook(validating, "-validation"), conversion("services"),
			},
			deleted: field{kind: "Service", name: "hello"},
			changed: edit{"Deployment", "activator", []string{"spec", "template", "spec", "containers", "0", "image"}, "other"},
			edits:   []edit{{"CustomResourceDefinition", "images", []string{"spec", "names", "shortNames"}, []any{"img"}}},
		},
	}
}

func isBundle(value any) bool { return value == webhooks.bundle }

var _ = Describe("Manifest sets", Ordered, ContinueOnFailure, func() {
	var w *env
	BeforeAll(func(ctx SpecContext) { w = newEnv(ctx) })

	for _, s := range newSets() {
		Describe("Set "+s.name, Ordered, func() {
			var p parameters
			BeforeAll(func() { p = newParameters(s.name) })

			It("installs the set with one write per object, and waits until it is ready [F76, F91, F94, F97]", func(ctx SpecContext) {
				before := w.Counter.Snapshot()
				Expect(w.CreateAndRun(ctx, s.name, p.config())).To(hasSucceeded())
				w.waitUntilFilled(ctx, p, s)
				w.WaitUntilQuiet(ctx)
				w.expectWrites(before, p, len(p.renderManifests()))
				w.expectJobsRunOnce(p)
				w.expectReview(ctx, p, s)
				w.expectReadinessUnknown(ctx, s)
			}, SpecTimeout(3*time.Minute))

			It("sends no write when nothing has changed [F91, F97]", func(ctx SpecContext) {
				before := w.Counter.Snapshot()
				Expect(w.RunAgain(ctx, s.name)).To(hasSucceeded())
				w.WaitUntilQuiet(ctx)
				w.expectWrites(before, p, 0)
				w.expectJobsRunOnce(p)
				w.waitUntilFilled(ctx, p, s)
				w.expectReadinessUnknown(ctx, s)
			}, SpecTimeout(3*time.Minute))

			It("sends one write for each changed object [F91, F97]", func(ctx SpecContext) {
				steps := []parameters{p.withChange()}
				for _, e := range s.edits {
					steps = append(steps, steps[len(steps)-1].withEdit(e))
				}
				for _, p = range steps {
					before := w.Counter.Snapshot()
					Expect(w.upgrade(ctx, p)).To(hasSucceeded())
					w.WaitUntilQuiet(ctx)
					w.expectWrites(before, p, 1)
					w.expectJobsRunOnce(p)
					w.waitUntilFilled(ctx, p, s)
				}
			}, SpecTimeout(3*time.Minute))

			It("corrects each object that another client changed with one write [F91, F97]", func(ctx SpecContext) {
				w.verifyLabelsCorrected(ctx, p, p.renderManifests())
				w.expectJobsRunOnce(p)
				w.waitUntilFilled(ctx, p, s)
			}, SpecTimeout(3*time.Minute))

			It("restores a deleted object, and corrects a changed field below spec [F91, F97]", func(ctx SpecContext) {
				w.verifyObjectsRestored(ctx, p, s)
				w.expectJobsRunOnce(p)
				w.waitUntilFilled(ctx, p, s)
				w.expectReview(ctx, p, s)
			}, SpecTimeout(3*time.Minute))

			It("upgrades the set to a new API version while the old one is removed, and sends no write after that [F70, F95]", func(ctx SpecContext) {
				if s.removes {
					p.Stored = "v1"
					Expect(w.upgrade(ctx, p)).To(hasSucceeded())
					w.migrateStorage(ctx, p)
				}
				old, conversions := p, webhooks.requests.get("/"+s.name+"/convert")
				p = p.withUpgrade()
				p.Removed = s.removes
				before := w.Counter.Snapshot()
				Expect(w.upgrade(ctx, p)).To(hasSucceeded())
				w.WaitUntilQuiet(ctx)
				w.expectUpgradeWrites(ctx, before, old, p)
				w.expectMigrated(ctx, p)
				w.expectJobsRunOnce(p)
				w.waitUntilFilled(ctx, p, s)
				if s.converts {
					Expect(webhooks.requests.get("/"+s.name+"/convert")).To(BeNumerically(">", conversions), "no conversions")
				}

				before = w.Counter.Snapshot()
				Expect(w.RunAgain(ctx, s.name)).To(hasSucceeded())
				w.WaitUntilQuiet(ctx)
				w.expectWrites(before, p, 0)
				w.verifyLabelsCorrected(ctx, p, p.listCustomResources())
			}, SpecTimeout(3*time.Minute))
		})
	}

	It("restores a lost inventory, and leaves the copy of a Secret that another program made [F98]", func(ctx SpecContext) {
		p := newParameters("compositions").withChange().withUpgrade()
		replica := &corev1.Secret{}
		get := func() error {
			return w.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace + "-tenant", Name: "root-ca"}, replica)
		}
		Eventually(get).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		original := replica.DeepCopy()
		Expect(original.Labels).To(HaveKey(ownership.LabelItem), "the copy has the labels of the original")
		before := w.Counter.Snapshot()
		w.removeInventory(ctx, p.Name)
		Expect(w.RunAgain(ctx, p.Name)).To(hasSucceeded())
		w.WaitUntilQuiet(ctx)
		w.expectWrites(before, p, len(p.renderManifests())) // with the owner label only, the deployer cannot know what changed
		Expect(get()).To(Succeed())
		Expect(replica).To(Equal(original))
	}, SpecTimeout(3*time.Minute))

	Describe("Deletion of a set", Ordered, func() {
		var before faultnet.Counts
		BeforeAll(func(ctx SpecContext) {
			before = w.Counter.Snapshot()
			for _, s := range newSets() { // all at once, because the deletion of a Namespace takes several seconds
				w.requestDeletion(ctx, s.name)
			}
		})

		for _, s := range newSets() {
			It("deletes all objects of the set "+s.name+" [F70]", func(ctx SpecContext) {
				w.waitUntilDeleted(ctx, s.name)
				w.waitUntilNothingRemains(ctx, newParameters(s.name))
				w.expectDeletions(before, newParameters(s.name).withUpgrade())
			}, SpecTimeout(3*time.Minute))
		}
	})
})

var _ = Describe("Manifest sets with the strategy update", Ordered, ContinueOnFailure, func() {
	var w *env
	BeforeAll(func(ctx SpecContext) { w = newEnv(ctx) })

	for _, s := range newSets() {
		if s.name != "certificates" && s.name != "ingress" {
			continue
		}
		It("installs, keeps, changes and deletes the set "+s.name+" with one write per object and change [F91, F97]", func(ctx SpecContext) {
			p := newParameters(s.name).withStrategy("update")
			before := w.Counter.Snapshot()
			Expect(w.CreateAndRun(ctx, s.name, p.config())).To(hasSucceeded())
			w.waitUntilFilled(ctx, p, s)
			w.WaitUntilQuiet(ctx)
			_, written := w.GetRequestCounts(before) // the requests that create objects do not contain the names of these objects
			Expect(written).To(Equal(len(p.renderManifests())), "requests: %s", w.Counter.Snapshot().Since(before).OnlyWrites())
			w.expectJobsRunOnce(p)

			before = w.Counter.Snapshot()
			Expect(w.RunAgain(ctx, s.name)).To(hasSucceeded())
			w.WaitUntilQuiet(ctx)
			w.expectWrites(before, p, 0)

			steps := []parameters{p.withChange()}
			for _, e := range s.edits {
				steps = append(steps, steps[len(steps)-1].withEdit(e))
			}
			for _, p = range steps {
				before = w.Counter.Snapshot()
				Expect(w.upgrade(ctx, p)).To(hasSucceeded())
				w.WaitUntilQuiet(ctx)
				w.expectWrites(before, p, 1)
				w.expectJobsRunOnce(p)
				w.waitUntilFilled(ctx, p, s)
			}

			before = w.Counter.Snapshot()
			w.requestDeletion(ctx, s.name)
			w.waitUntilDeleted(ctx, s.name)
			w.waitUntilNothingRemains(ctx, p)
			w.expectDeletions(before, p)
		}, SpecTimeout(3*time.Minute))
	}
})

// expectDeletions checks the writes of a deletion: one for each object of the set that existed.
func (w *env) expectDeletions(before faultnet.Counts, p parameters) {
	GinkgoHelper()
	want := len(slices.DeleteFunc(p.renderManifests(), func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Job" }))
	writes := w.getWrites(before, p)
	Expect(writes.Sum()).To(Equal(want), "writes: %s", writes)
}

// expectReadinessUnknown checks which kinds the condition ReadinessUnknown names.
func (w *env) expectReadinessUnknown(ctx context.Context, s set) {
	GinkgoHelper()
	condition := w.Condition(ctx, s.name, managed.ConditionReadinessUnknown)(NewGomega(Fail))
	if len(s.uncertain) == 0 {
		Expect(condition).To(BeNil())
		return
	}
	Expect(condition).NotTo(BeNil(), "the condition ReadinessUnknown is missing")
	Expect(condition.Status).To(Equal(lsv1alpha1.ConditionTrue))
	for _, kind := range s.uncertain {
		Expect(condition.Message).To(ContainSubstring(kind + "." + newParameters(s.name).Group))
	}
}
