// SPDX-License-Identifier: Apache-2.0

package body

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// parse returns an object that is written as YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// The first lines of the objects in this file.
const (
	clusterRole    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
	claimObject    = "apiVersion: v1\nkind: PersistentVolumeClaim\n"
	volumeObject   = "apiVersion: v1\nkind: PersistentVolume\n"
	tlsObject      = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\n"
	webhooksObject = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"
	apiObject      = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n"
)

// TestReplace covers the strategies that write a complete object.
func TestReplace(t *testing.T) {
	owner := ownership.Owner{UID: "u"}
	for name, tc := range map[string]struct{ manifest, live, owned, want string }{
		"keeps the rules of an aggregated ClusterRole": {
			manifest: clusterRole + "aggregationRule: {}", live: "rules: [{verbs: [get]}]", want: "rules: [{verbs: [get]}]",
		},
		"removes the rules of a ClusterRole that is not aggregated": {manifest: clusterRole, live: "rules: [{verbs: [get]}]", want: "{}"},
		"keeps the secrets of a ServiceAccount": {
			manifest: "apiVersion: v1\nkind: ServiceAccount", live: "secrets: [{name: a}]", want: "secrets: [{name: a}]",
		},
		"keeps the volume of a claim": {manifest: claimObject + "spec: {}", live: "spec: {volumeName: v, a: b}", want: "spec: {volumeName: v}"},
		"keeps the UID of a claim": {
			manifest: volumeObject + "spec: {claimRef: {name: a}}", live: "spec: {claimRef: {name: b, uid: u}}", want: "spec: {claimRef: {name: a, uid: u}}",
		},
		"keeps the bundle of the webhook with the same name": {
			manifest: webhooksObject + "webhooks: [{name: b, clientConfig: {}}, {name: a, clientConfig: {caBundle: YQ==}}, {name: c, clientConfig: {}}]",
			live:     "webhooks: [{name: a, clientConfig: {caBundle: Yg==}}, {name: b, clientConfig: {caBundle: Yg==}}]",
			want:     "webhooks: [{name: b, clientConfig: {caBundle: Yg==}}, {name: a, clientConfig: {caBundle: YQ==}}, {name: c, clientConfig: {}}]",
		},
		"removes a bundle that the item itself has set": {
			manifest: webhooksObject + "webhooks: [{name: a, clientConfig: {}}]",
			live:     "webhooks: [{name: a, clientConfig: {caBundle: Yg==}}]",
			owned:    `{f:webhooks: {'k:{"name":"a"}': {f:clientConfig: {f:caBundle: {}}}}}`,
			want:     "webhooks: [{name: a, clientConfig: {}}]",
		},
		"removes a reference that the item itself has set": {
			manifest: volumeObject + "spec: {}", live: "spec: {claimRef: {name: a}}", owned: "{f:spec: {f:claimRef: {f:name: {}}}}", want: "spec: {}",
		},
		"keeps a certificate although the manifest contains placeholders": {
			manifest: tlsObject + "data: {tls.crt: '', tls.key: ''}", live: "data: {tls.crt: YQ==, tls.key: Yg==, ca.crt: Yw==}",
			want: "data: {tls.crt: YQ==, tls.key: Yg==, ca.crt: Yw==}",
		},
		"keeps a placeholder that no program has filled": {
			manifest: tlsObject + "data: {tls.crt: '', tls.key: ''}", live: "data: {tls.crt: '', tls.key: Yg==}", want: "data: {tls.crt: '', tls.key: Yg==}",
		},
		"writes the certificate of the manifest": {
			manifest: tlsObject + "data: {tls.crt: Yw==, tls.key: ''}", live: "data: {tls.crt: YQ==, tls.key: Yg==}", want: "data: {tls.crt: Yw==, tls.key: Yg==}",
		},
		"removes a certificate that the item itself has set": {
			manifest: tlsObject + "data: {tls.crt: '', tls.key: ''}", live: "data: {tls.crt: YQ==, tls.key: Yg==}", owned: "{f:data: {f:tls.crt: {}}}",
			want: "data: {tls.crt: '', tls.key: Yg==}",
		},
		"adds nothing to a field of another type": {
			manifest: apiObject + "spec: a", live: "spec: {caBundle: YQ==}", want: "spec: a",
		},
	} {
		t.Run(name+" [F97]", func(t *testing.T) {
			manifest := parse(t, tc.manifest)
			owner.Mark(manifest)
			live := parse(t, tc.live)
			live.SetGroupVersionKind(manifest.GroupVersionKind())
			if tc.owned != "" {
				set := parse(t, tc.owned).Object
				entry := map[string]any{"manager": owner.FieldManager(), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": set}
				live.Object["metadata"] = map[string]any{"managedFields": []any{entry}}
			}
			got := Replace(manifest, live).Object
			for _, field := range []string{"apiVersion", "kind", "type", "metadata", "aggregationRule"} {
				delete(got, field)
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, got); diff != "" {
				t.Error("the new object differs (-want +got):", diff)
			}
		})
	}
}
