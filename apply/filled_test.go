// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
	tokenObject    = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\n"
	tlsObject      = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\n"
	webhooksObject = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"
	crdObject      = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
	apiObject      = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n"
)

func TestFieldsThatOthersFillAreDropped(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"the rules of an aggregated ClusterRole are dropped if they are empty": {
			clusterRole + "aggregationRule: {clusterRoleSelectors: []}\nrules: []", clusterRole + "aggregationRule: {clusterRoleSelectors: []}",
		},
		"the rules of an aggregated ClusterRole are dropped if they are null": {
			clusterRole + "aggregationRule: {}\nrules: null", clusterRole + "aggregationRule: {}",
		},
		"the rules of an aggregated ClusterRole are dropped if they have items": {
			clusterRole + "aggregationRule: {}\nrules: [{verbs: [get]}]", clusterRole + "aggregationRule: {}",
		},
		"the empty rules of another ClusterRole stay": {clusterRole + "rules: []", clusterRole + "rules: []"},
		"the empty rules of a ClusterRole without a rule for aggregation stay": {
			clusterRole + "aggregationRule: null\nrules: []", clusterRole + "aggregationRule: null\nrules: []",
		},
		"the empty rules of a Role stay": {
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\naggregationRule: {}\nrules: []",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\naggregationRule: {}\nrules: []",
		},
		"the empty secrets of a ServiceAccount are dropped, and its pull secrets stay": {
			"apiVersion: v1\nkind: ServiceAccount\nsecrets: []\nimagePullSecrets: []", "apiVersion: v1\nkind: ServiceAccount\nimagePullSecrets: []",
		},
		"the secrets of a ServiceAccount stay": {
			"apiVersion: v1\nkind: ServiceAccount\nsecrets: [{name: a}]", "apiVersion: v1\nkind: ServiceAccount\nsecrets: [{name: a}]",
		},
		"the empty bundles of webhooks are dropped": {
			webhooksObject + "webhooks: [{name: a, clientConfig: {caBundle: ''}}, {name: b, clientConfig: {caBundle: Cg==}}, {name: c, clientConfig: {caBundle: YQ==}}]",
			webhooksObject + "webhooks: [{name: a, clientConfig: {}}, {name: b, clientConfig: {}}, {name: c, clientConfig: {caBundle: YQ==}}]",
		},
		"the empty list of webhooks stays": {webhooksObject + "webhooks: []", webhooksObject + "webhooks: []"},
		"a bundle that is not text stays":  {apiObject + "spec: {caBundle: [a]}", apiObject + "spec: {caBundle: [a]}"},
		"the empty bundle of an APIService is dropped": {
			apiObject + "spec: {caBundle: null, group: a}", apiObject + "spec: {group: a}",
		},
		"the empty bundle of a conversion is dropped": {
			crdObject + "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: '', url: u}}}}",
			crdObject + "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u}}}}",
		},
		"the empty volume of a claim is dropped, and the empty name of a class stays": {
			claimObject + "spec: {volumeName: '', storageClassName: ''}", claimObject + "spec: {storageClassName: ''}",
		},
		"the class of a claim is dropped if it is null": {claimObject + "spec: {storageClassName: null}", claimObject + "spec: {}"},
		"the empty fields of a reference to a claim are dropped": {
			volumeObject + "spec: {claimRef: {name: a, uid: '', resourceVersion: ''}}", volumeObject + "spec: {claimRef: {name: a}}",
		},
		"an empty reference to a claim is dropped": {volumeObject + "spec: {claimRef: {uid: ''}}", volumeObject + "spec: {}"},
		"the empty finalizers of a claim are dropped": {
			claimObject + "metadata: {name: a, finalizers: []}", claimObject + "metadata: {name: a}",
		},
		"the empty finalizers of any other kind are dropped": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {finalizers: []}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}",
		},
		"the replicas of a Deployment are dropped if they are null": {
			"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: null}", "apiVersion: apps/v1\nkind: Deployment\nspec: {}",
		},
		"the replicas of a Deployment stay if they are zero": {
			"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0}", "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0}",
		},
		"the class of an Ingress is dropped if it is null": {
			"apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {ingressClassName: null}", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {}",
		},
		"the empty token of a Secret is dropped": {tokenObject + "data: {token: '', a: ''}", tokenObject + "data: {a: ''}"},
		"the empty data of a Secret for a token is dropped": {
			tokenObject + "data: {token: ''}", tokenObject,
		},
		"the empty data of another Secret stays": {"apiVersion: v1\nkind: Secret\ndata: {token: ''}", "apiVersion: v1\nkind: Secret\ndata: {token: ''}"},
		"the empty keys of a certificate stay, and the empty certificate of its issuer is dropped": {
			tlsObject + "data: {tls.crt: '', tls.key: '', ca.crt: ''}", tlsObject + "data: {tls.crt: '', tls.key: ''}",
		},
		"the empty text of a certificate becomes empty data": {
			tlsObject + "stringData: {tls.crt: '', tls.key: '', ca.crt: ''}", tlsObject + "data: {tls.crt: '', tls.key: ''}",
		},
		"the empty token of a Secret is dropped from its text": {tokenObject + "stringData: {token: ''}", tokenObject},
		"the empty node of a Pod is dropped":                   {"apiVersion: v1\nkind: Pod\nspec: {nodeName: ''}", "apiVersion: v1\nkind: Pod\nspec: {}"},
	} {
		t.Run(name+" [F97]", func(t *testing.T) {
			manifest := parse(t, tc.manifest)
			normalizeManifest(manifest)
			if diff := cmp.Diff(parse(t, tc.want).Object, manifest.Object); diff != "" {
				t.Error("the manifest differs (-want +got):", diff)
			}
		})
	}
}
