// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Immutable fields", func() {
	type body = map[string]any
	type change struct {
		apiVersion, kind string
		cluster          bool // the kind has no namespace
		before, after    body
		path             string // a part of the path in the error
	}
	subjects := []any{body{"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}}
	role := func(kind, name string) body {
		return body{"subjects": subjects, "roleRef": body{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}}
	}
	claim := func(size, class string) body {
		return body{"spec": body{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": class, "resources": body{"requests": body{"storage": size}}}}
	}
	stateful := func(service string) body {
		return body{"spec": body{"serviceName": service, "selector": body{"matchLabels": body{"app": "a"}}, "template": body{
			"metadata": body{"labels": body{"app": "a"}}, "spec": body{"containers": []any{body{"name": "c", "image": "i"}}},
		}}}
	}
	pod := func(name string) body {
		return body{"spec": body{"containers": []any{body{"name": name, "image": "i"}}}}
	}
	driver := func(policy string) body { return body{"spec": body{"attachRequired": true, "fsGroupPolicy": policy}} }
	for name, c := range map[string]change{
		"value of a PriorityClass":            {"scheduling.k8s.io/v1", "PriorityClass", true, body{"value": int64(1)}, body{"value": int64(2)}, ".value"},
		"preemptionPolicy of a PriorityClass": {"scheduling.k8s.io/v1", "PriorityClass", true, body{"value": int64(1)}, body{"value": int64(1), "preemptionPolicy": "Never"}, ".preemptionPolicy"},
		"provisioner of a StorageClass":       {"storage.k8s.io/v1", "StorageClass", true, body{"provisioner": "a.example.org"}, body{"provisioner": "b.example.org"}, ".provisioner"},
		"parameters of a StorageClass":        {"storage.k8s.io/v1", "StorageClass", true, body{"provisioner": "a.example.org", "parameters": body{"k": "1"}}, body{"provisioner": "a.example.org", "parameters": body{"k": "2"}}, ".parameters"},
		"handler of a RuntimeClass":           {"node.k8s.io/v1", "RuntimeClass", true, body{"handler": "a"}, body{"handler": "b"}, ".handler"},
		"attachRequired of a CSIDriver":       {"storage.k8s.io/v1", "CSIDriver", true, driver("None"), body{"spec": body{"attachRequired": false, "fsGroupPolicy": "None"}}, ".spec.attachedRequired"},
		"controller of an IngressClass":       {"networking.k8s.io/v1", "IngressClass", true, body{"spec": body{"controller": "example.org/a"}}, body{"spec": body{"controller": "example.org/b"}}, ".spec.controller"},
		"roleRef of a RoleBinding":            {"rbac.authorization.k8s.io/v1", "RoleBinding", false, role("Role", "a"), role("Role", "b"), ".roleRef"},
		"roleRef of a ClusterRoleBinding":     {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", true, role("ClusterRole", "a"), role("ClusterRole", "b"), ".roleRef"},
		"clusterIP of a Service":              {"v1", "Service", false, body{"spec": body{"ports": []any{body{"port": int64(1)}}}}, body{"spec": body{"clusterIP": "None", "ports": []any{body{"port": int64(1)}}}}, ".spec.clusterIP"},
		"spec of a PersistentVolumeClaim":     {"v1", "PersistentVolumeClaim", false, claim("1Gi", "a"), claim("1Gi", "b"), ".spec"},
		"serviceName of a StatefulSet":        {"apps/v1", "StatefulSet", false, stateful("a"), stateful("b"), ".spec"},
		"containers of a Pod":                 {"v1", "Pod", false, pod("a"), body{"spec": body{"containers": []any{body{"name": "a", "image": "i", "command": []any{"x"}}}}}, ".spec"},
		"data of an immutable ConfigMap":      {"v1", "ConfigMap", false, body{"immutable": true, "data": body{"k": "1"}}, body{"immutable": true, "data": body{"k": "2"}}, ".data"},
		"data of an immutable Secret":         {"v1", "Secret", false, body{"immutable": true, "data": body{"k": "MQ=="}}, body{"immutable": true, "data": body{"k": "Mg=="}}, ".data"},
		"type of a Secret":                    {"v1", "Secret", false, body{"type": "example.org/a"}, body{"type": "example.org/b"}, ".type"},
	} {
		It("names the changed field in the error, and recreates the object if the options allow this: "+name+" [F104]", func(ctx SpecContext) {
			w := newEnv(ctx)
			manifest := func(content body) apply.Desired {
				out := w.manifest(c.apiVersion, c.kind, w.namespace, content)
				if c.cluster {
					out.Object.SetNamespace("")
				}
				return out
			}
			w.apply(ctx, manifest(c.before))
			uid := w.stored.Entries[0].UID
			for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate} {
				_, err := w.try(ctx, withStrategy(manifest(c.after), strategy))
				Expect(err).To(MatchError(SatisfyAll(ContainSubstring(c.path), ContainSubstring("cannot be changed, because the field is immutable"))))
				Expect(apply.GetClass(err)).To(Equal(apply.ClassPermanent))
			}
			w.options.Recreate = true
			// No controllers remove the finalizers, and no kubelet ends Pods.
			w.expectWaiting(ctx, "because an immutable field changed", manifest(c.after))
			Eventually(func(g Gomega) {
				live := manifest(nil).Object
				if direct.Get(ctx, client.ObjectKeyFromObject(live), live) == nil && live.GetDeletionTimestamp() != nil {
					g.Expect(direct.Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
				}
				_, err := w.try(ctx, manifest(c.after))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(w.stored.Entries).To(ConsistOf(HaveField("UID", Not(BeElementOf(uid, types.UID(""))))))
				g.Expect(w.stored.Entries[0].Hash).NotTo(BeEmpty())
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
		})
	}
})
