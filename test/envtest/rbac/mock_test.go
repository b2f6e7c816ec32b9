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

// mockConfig returns a configuration of the mock deployer with the given fields.
func mockConfig(more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"}
	maps.Copy(out, more)
	return out
}

// foreign returns a rule with which the write at the end of a run fails with a conflict, as if another client had
// changed the item. The deployer then reads the item again. After a conflict at the start of a run, the deployer does
// not read the item again, but ends the reconcile.
func foreign() faultnet.Rule {
	conflict := faultnet.Times(1, faultnet.Refuse(http.StatusConflict, metav1.StatusReasonConflict))
	return faultnet.Rule{
		Match: faultnet.Match{Verb: "patch", Resource: "deployitems", Subresource: "status"}, Times: faultnet.Always,
		Fault: faultnet.InPlace("conflict at the end of a run", func(req *http.Request) (*http.Response, error) {
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

// older returns a rule that simulates an older API server. Such a server rejects watches that begin with a list, so the
// client sends a list first.
func older() faultnet.Rule {
	refuse := faultnet.Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	return faultnet.Rule{Match: faultnet.Match{Verb: "watch"}, Times: faultnet.Always, Fault: faultnet.InPlace(
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
		for _, r := range rolesOf(mockRoles) {
			w.grant(ctx, r, w.user)
			rights = append(rights, r.rights()...)
		}
		w.target(ctx, "some", []byte("{}"))
		for revision, rule := range map[contract.Revision]faultnet.Rule{contract.RevisionJobID: foreign(), contract.RevisionAnnotation: older()} {
			w.under(revision)
			w.start(mock.Args(nil), rule)
			w.mockLife(ctx, string(revision))
			w.Manager.Stop()
		}
		Eventually(unused(w.user, rights)).WithTimeout(patience).Should(BeEmpty(), "the role grants a right that the deployer does not need")
		Expect(refused(w.user)(NewGomega(Fail))).To(BeEmpty())
	}, SpecTimeout(8*time.Minute))

	DescribeTable("the deployer does not complete an item without a right", func(ctx SpecContext, gone string, sign func(*env, context.Context)) {
		w := newEnv(ctx)
		w.elects = true
		for _, r := range rolesOf(mockRoles) {
			w.grant(ctx, r.without(gone), w.user)
		}
		w.start(mock.Args(nil))
		w.target(ctx, "some", []byte("{}"))
		w.create(ctx, "item", "some", mockConfig(map[string]any{"export": map[string]any{"a": 1}}))
		Eventually(refused(w.user)).WithTimeout(patience).Should(ContainElement(gone))
		sign(w, ctx)
		Expect(refused(w.user)(NewGomega(Fail))).To(HaveEach(BeElementOf(gone, strings.Replace(gone, "patch", "update", 1))),
			"an update is tried where patches are refused")
	},
		Entry("to write the status", "patch deployitems/status.landscaper.gardener.cloud", func(w *env, ctx context.Context) {
			di, err := w.Landscaper.Get(ctx, w.Key("item"))
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.Phase).To(BeEmpty())
		}),
		Entry("to read the Secrets of Targets", "get secrets", func(w *env, ctx context.Context) {
			Eventually(w.lastError(ctx, "item")).WithTimeout(patience).Should(ContainSubstring(`cannot get resource "secrets"`))
		}),
		Entry("to write exports", "create secrets", func(w *env, ctx context.Context) {
			Eventually(w.lastError(ctx, "item")).WithTimeout(patience).Should(ContainSubstring(`cannot create resource "secrets"`))
		}),
	)
})

// mockLife deploys, changes and deletes an item of the mock deployer.
func (w *env) mockLife(ctx context.Context, name string) {
	GinkgoHelper()
	By(name + ": install")
	w.create(ctx, name, "some", mockConfig(map[string]any{"export": map[string]any{"a": 1}}))
	Expect(w.ends(ctx, name, phases.Succeeded).Status.ExportReference).NotTo(BeNil())

	By("changing the export")
	w.update(ctx, name, mockConfig(map[string]any{"export": map[string]any{"a": 2}}))
	w.ends(ctx, name, phases.Succeeded)

	By("causing an error")
	w.update(ctx, name, map[string]any{"nonsense": true})
	w.ends(ctx, name, phases.Failed)
	Eventually(w.events(ctx, name)).WithTimeout(patience).Should(ContainElement(ContainSubstring("nonsense")))

	By("deleting the item")
	w.update(ctx, name, mockConfig(map[string]any{"export": map[string]any{"a": 3}}))
	w.ends(ctx, name, phases.Succeeded)
	w.Delete(ctx, name)
}
