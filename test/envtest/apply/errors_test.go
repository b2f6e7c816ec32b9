// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Errors of an apply", func() {
	const canary = "CANARY-5f1c"
	type wrong struct {
		apiVersion, kind string
		body             map[string]any
		path, reason     string
	}
	pod := func(container map[string]any) map[string]any {
		container["name"], container["image"] = "c", "i"
		return map[string]any{"spec": map[string]any{"containers": []any{container}}}
	}
	for title, c := range map[string]wrong{
		"an unknown field":       {"v1", "ConfigMap", map[string]any{"daten": map[string]any{}}, ".daten", "field not declared in schema"},
		"a wrong type":           {"v1", "Secret", map[string]any{"data": map[string]any{"k": map[string]any{"nested": canary}}}, ".data.k", "expected string"},
		"a duplicate":            {"v1", "Pod", pod(map[string]any{"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "A", "value": "2"}}}), ".spec.containers", "duplicate"},
		"an invalid value":       {"v1", "Service", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(0)}}}}, ".spec.ports[0].port", "between 1 and 65535"},
		"bad base64":             {"v1", "Secret", map[string]any{"data": map[string]any{"k": "%" + canary}}, "", "base64"},
		"a kind without a watch": {"authorization.k8s.io/v1", "LocalSubjectAccessReview", map[string]any{"spec": map[string]any{"user": "me"}}, "", "cannot apply this kind"},
		"an object that is too large": {"v1", "ConfigMap", map[string]any{"binaryData": map[string]any{
			"k": base64.StdEncoding.EncodeToString(make([]byte, 1<<20+10)),
		}}, "", "may not be more than 1048576 bytes"},
	} {
		It("the error about "+title+" is permanent and names the field, without values", func(ctx SpecContext) {
			w := newEnv(ctx)
			_, err := w.try(ctx, w.manifest(c.apiVersion, c.kind, "a", c.body))
			Expect(err).To(HaveOccurred())
			Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent), err.Error())
			Expect(err.Error()).To(SatisfyAll(
				ContainSubstring("/a"), ContainSubstring(c.path), ContainSubstring(c.reason),
				Not(ContainSubstring("\n")), Not(ContainSubstring(canary))))
			Expect(len(err.Error())).To(BeNumerically("<=", 1200))
		})
	}

	It("the error about an immutable field names the field, and the object is replaced only with Recreate", func(ctx SpecContext) {
		w := newEnv(ctx)
		secret := func(kind string) apply.Desired {
			return w.manifest("v1", "Secret", "a", map[string]any{"type": kind, "stringData": map[string]any{"k": canary}})
		}
		w.apply(ctx, secret("example.org/one"))
		uid := w.stored.Entries[0].UID
		_, err := w.try(ctx, secret("example.org/two"))
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring(".type"), ContainSubstring("immutable"))))
		Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
		w.options.Recreate = true
		w.apply(ctx, secret("example.org/two"))
		Expect(w.stored.Entries[0].UID).NotTo(Equal(uid))
	})

	It("the error about an object contains no value of a Secret in the same call", func(ctx SpecContext) {
		w := newEnv(ctx)
		secret := w.manifest("v1", "Secret", "a", map[string]any{"stringData": map[string]any{"k": canary}})
		service := w.manifest("v1", "Service", "b", map[string]any{"spec": map[string]any{"type": canary, "ports": []any{map[string]any{"port": int64(1)}}}})
		_, err := w.try(ctx, secret, service)
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring(".spec.type"), Not(ContainSubstring(canary)))))
	})

	It("the error lists all invalid manifests at once, before the first request", func(ctx SpecContext) {
		w := newEnv(ctx)
		noNamespace := w.configMap("b")
		noNamespace.Object.SetNamespace("")
		spent := w.recordRequests(func() {
			_, err := w.try(ctx, w.configMap(""), noNamespace, w.configMap("d"), w.configMap("d"), apply.Desired{})
			for _, part := range []string{".metadata.name: is required", ".metadata.namespace: is required", "is listed more than once", "is empty"} {
				Expect(err).To(MatchError(ContainSubstring(part)))
			}
			Expect(strings.Count(err.Error(), "\n")).To(BeZero())
		})
		Expect(spent.Sum()).To(BeZero())
	})
})
