// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/faultnet"
)

const mockRoles = "../../../deployers/mock/rbac.yaml"

// newMockConfig returns a configuration of the mock deployer with the given fields.
func newMockConfig(more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"}
	maps.Copy(out, more)
	return out
}

// newConflictRule returns a rule with which the write at the end of a run fails with a conflict, as if another client
// had changed the item. The deployer then reads the item again. After a conflict at the start of a run, the deployer
// does not read the item again, but ends the reconcile.
func newConflictRule() faultnet.Rule {
	conflict := faultnet.OnlyFirst(1, faultnet.ReturnStatus(http.StatusConflict, metav1.StatusReasonConflict))
	return faultnet.Rule{
		Match: faultnet.Match{Verb: "patch", Resource: "deployitems", Subresource: "status"}, Times: faultnet.Always,
		Fault: faultnet.NewFault("conflict at the end of a run", func(req *http.Request) (*http.Response, error) {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			var sent struct{ Status lsv1alpha1.DeployItemStatus }
			if err := json.NewDecoder(body).Decode(&sent); err != nil || sent.Status.Phase != phases.Succeeded {
				return nil, err
			}
			return conflict(req)
		}),
	}
}

// newOldServerRule returns a rule that simulates an older API server. Such a server rejects watches that begin with a
// list, so the client sends a list first.
func newOldServerRule() faultnet.Rule {
	refuse := faultnet.ReturnStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	return faultnet.Rule{Match: faultnet.Match{Verb: "watch"}, Times: faultnet.Always, Fault: faultnet.NewFault(
		"no streamed lists", func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("sendInitialEvents") == "" {
				return nil, nil
			}
			return refuse(req)
		})}
}

var _ = Describe("Rights of the mock deployer", func() {
	It("the deployer needs all rights of its rbac.yaml in both revisions, and no others", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.elects = true
		rights := []right{}
		for _, r := range readRoles(mockRoles) {
			w.createRole(ctx, r, w.user)
			rights = append(rights, r.listRights()...)
		}
		w.createTarget(ctx, "some", []byte("{}"))
		for revision, rule := range map[contract.Revision]faultnet.Rule{contract.RevisionJobID: newConflictRule(), contract.RevisionAnnotation: newOldServerRule()} {
			w.setRevision(revision)
			w.start(mock.Args(nil), rule)
			w.runMockLifecycle(ctx, string(revision))
			w.Manager.Stop()
		}
		Eventually(listUnused(w.user, rights)).WithTimeout(patience).Should(BeEmpty(), "the role grants a right that the deployer does not need")
		Expect(listRefused(w.user)(NewGomega(Fail))).To(BeEmpty())
	}, SpecTimeout(8*time.Minute))

	DescribeTable("the deployer does not complete an item if a right is missing", func(ctx SpecContext, gone string, sign func(*env, context.Context)) {
		w := newEnv(ctx)
		w.elects = true
		for _, r := range readRoles(mockRoles) {
			w.createRole(ctx, r.without(gone), w.user)
		}
		w.start(mock.Args(nil))
		w.createTarget(ctx, "some", []byte("{}"))
		w.create(ctx, "item", "some", newMockConfig(map[string]any{"export": map[string]any{"a": 1}}))
		Eventually(listRefused(w.user)).WithTimeout(patience).Should(ContainElement(gone))
		sign(w, ctx)
		Expect(listRefused(w.user)(NewGomega(Fail))).To(HaveEach(BeElementOf(gone, strings.Replace(gone, "patch", "update", 1))),
			"an update is tried where patches are refused")
	},
		Entry("the deployer may not write the status", "patch deployitems/status.landscaper.gardener.cloud", func(w *env, ctx context.Context) {
			di, err := w.Landscaper.Get(ctx, w.Key("item"))
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.Phase).To(BeEmpty())
		}),
		Entry("the deployer may not read the Secrets of Targets", "get secrets", func(w *env, ctx context.Context) {
			Eventually(w.lastError(ctx, "item")).WithTimeout(patience).Should(ContainSubstring(`cannot get resource "secrets"`))
		}),
		Entry("the deployer may not write exports", "create secrets", func(w *env, ctx context.Context) {
			Eventually(w.lastError(ctx, "item")).WithTimeout(patience).Should(ContainSubstring(`cannot create resource "secrets"`))
		}),
	)
})

// runMockLifecycle deploys, changes and deletes an item of the mock deployer.
func (w *env) runMockLifecycle(ctx context.Context, name string) {
	GinkgoHelper()
	By(name + ": install")
	w.create(ctx, name, "some", newMockConfig(map[string]any{"export": map[string]any{"a": 1}}))
	Expect(w.waitForPhase(ctx, name, phases.Succeeded).Status.ExportReference).NotTo(BeNil())

	By("changing the export")
	w.update(ctx, name, newMockConfig(map[string]any{"export": map[string]any{"a": 2}}))
	w.waitForPhase(ctx, name, phases.Succeeded)

	By("causing an error")
	w.update(ctx, name, map[string]any{"nonsense": true})
	w.waitForPhase(ctx, name, phases.Failed)
	Eventually(w.events(ctx, name)).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))

	By("deleting the item")
	w.update(ctx, name, newMockConfig(map[string]any{"export": map[string]any{"a": 3}}))
	w.waitForPhase(ctx, name, phases.Succeeded)
	w.Delete(ctx, name)
}
