// SPDX-License-Identifier: Apache-2.0

// Package render_test checks the objects that the charts render, without a cluster.
package render_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

const (
	manifestChart = "manifest-deployer"
	mockChart     = "mock-deployer"
	helmChart     = "helm-deployer"

	deployment = "Deployment"
	pod        = "spec.template.spec."
	container  = pod + "containers.0."
)

// allCharts are the charts of this repository.
var allCharts = []string{helmChart, manifestChart, mockChart}

// render renders a chart with the release name "rel" for the namespace ls-system.
func render(t *testing.T, chart, values string) *helm.Rendered {
	t.Helper()
	out, err := helm.Render(helm.FindChart(chart), "rel", "ls-system", values)
	if err != nil {
		t.Fatalf("%s: %v", chart, err)
	}
	return out
}

// eachChart runs a test for each chart.
func eachChart(t *testing.T, test func(t *testing.T, chart string)) {
	t.Helper()
	for _, chart := range allCharts {
		t.Run(chart, func(t *testing.T) { test(t, chart) })
	}
}

// one returns the only rendered object of a kind. It fails the test if there is no such object, or more than one.
func one(t *testing.T, r *helm.Rendered, kind string) *unstructured.Unstructured {
	t.Helper()
	found := all(r, kind)
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s, want one", len(found), kind)
	}
	return found[0]
}

func all(r *helm.Rendered, kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// getPath returns the value at a path, or nil if there is none. Dots separate the parts of the path, and numbers are
// indices of lists.
func getPath(o *unstructured.Unstructured, path string) any {
	var value any = o.Object
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "."), ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[strings.ReplaceAll(part, "~", ".")]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// require compares the value at a path with a value in YAML. The constant `none` means that there must be no value.
func require(t *testing.T, o *unstructured.Unstructured, path, want string) {
	t.Helper()
	var wanted any
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	got := getPath(o, path)
	if !reflect.DeepEqual(normalizeNumbers(t, got), normalizeNumbers(t, wanted)) {
		t.Errorf("%s %s, %s: got %v, want %v", o.GetKind(), o.GetName(), path, got, want)
	}
}

// normalizeNumbers converts a value so that all numbers in it have the same type.
func normalizeNumbers(t *testing.T, value any) (out any) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// args returns the arguments of the container in the Deployment or StatefulSet.
func args(t *testing.T, r *helm.Rendered) []string {
	t.Helper()
	kind := deployment
	if len(all(r, kind)) == 0 {
		kind = "StatefulSet"
	}
	values, _, err := unstructured.NestedStringSlice(map[string]any{"x": getPath(one(t, r, kind), container+"args")}, "x")
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// getEnv returns those environment variables of the container that have a literal value.
func getEnv(t *testing.T, r *helm.Rendered) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range getPath(one(t, r, deployment), container+"env").([]any) {
		if value, has := v.(map[string]any)["value"]; has {
			out[v.(map[string]any)["name"].(string)] = value.(string)
		}
	}
	return out
}

// getConfiguration returns the content of the configuration file.
func getConfiguration(t *testing.T, r *helm.Rendered) string {
	t.Helper()
	for _, secret := range all(r, "Secret") {
		if strings.HasSuffix(secret.GetName(), "-config") {
			return getSecretData(t, secret, "config.yaml")
		}
	}
	t.Fatal("there is no configuration")
	return ""
}

func getSecretData(t *testing.T, secret *unstructured.Unstructured, key string) string {
	t.Helper()
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", key)
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded)
}

// change contains chart values and the rendered fields that these values must produce. The keys of the field `want` are
// paths in the Deployment. If a key begins with a kind, it is a path in the only object of that kind.
type change struct {
	name   string
	values string
	want   map[string]string
}

func TestValues(t *testing.T) {
	for _, test := range []change{
		{name: "image [O13]", values: "image: {repository: r.example/x, tag: v1, pullPolicy: Always}\nimagePullSecrets: [{name: s}]", want: map[string]string{
			container + "image": "r.example/x:v1", container + "imagePullPolicy": "Always", pod + "imagePullSecrets": "[{name: s}]",
		}},
		{name: "image by appVersion [O13]", values: "image: {repository: r.example/x}", want: map[string]string{container + "image": "r.example/x:v0.1.0"}},
		{name: "image by digest [O13]", values: "image: {repository: r.example/x, tag: 'sha256:abc'}", want: map[string]string{container + "image": "r.example/x@sha256:abc"}},
		{name: "replicas [O12]", values: "replicaCount: 3", want: map[string]string{"spec.replicas": "3"}},
		{name: "replicas of an autoscaler [O12, O14]", values: "{replicaCount: 3, hpa: {maxReplicas: 4}}", want: map[string]string{
			"spec.replicas": "null", "HorizontalPodAutoscaler spec.minReplicas": "1", "HorizontalPodAutoscaler spec.maxReplicas": "4",
			"HorizontalPodAutoscaler apiVersion": "autoscaling/v2", "HorizontalPodAutoscaler spec.scaleTargetRef.name": "rel-CHART",
			"HorizontalPodAutoscaler spec.metrics.0.resource": "{name: cpu, target: {type: Utilization, averageUtilization: 80}}",
			"HorizontalPodAutoscaler spec.metrics.1.resource": "{name: memory, target: {type: Utilization, averageUtilization: 80}}",
		}},
		{name: "utilization [O14]", values: "hpa: {maxReplicas: 2, averageCpuUtilization: 50, averageMemoryUtilization: 60}", want: map[string]string{
			"HorizontalPodAutoscaler spec.metrics.0.resource.target.averageUtilization": "50",
			"HorizontalPodAutoscaler spec.metrics.1.resource.target.averageUtilization": "60",
		}},
		{name: "annotations and placement [O19]", values: "{serviceAccount: {annotations: {a: 1}}, podAnnotations: {one: 1, b: true}, nodeSelector: {x: z}, tolerations: [{key: k}], affinity: {nodeAffinity: {}}}", want: map[string]string{
			"ServiceAccount metadata.annotations": "{a: '1'}", "spec.template.metadata.annotations.one": "'1'", "spec.template.metadata.annotations.b": "'true'",
			pod + "nodeSelector": "{x: z}", pod + "tolerations": "[{key: k}]", pod + "affinity": "{nodeAffinity: {}}",
		}},
		{name: "security contexts by default [O20]", want: map[string]string{
			pod + "securityContext":       "{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}",
			container + "securityContext": "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}",
		}},
		{name: "fields of security contexts [O20]", values: "{podSecurityContext: {fsGroup: 5}, securityContext: {readOnlyRootFilesystem: false, runAsUser: 7}}", want: map[string]string{
			pod + "securityContext":       "{fsGroup: 5, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}",
			container + "securityContext": "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: false, runAsUser: 7}",
		}},
		{name: "resources by default [O21]", want: map[string]string{container + "resources": "{requests: {cpu: REQUEST_CPU, memory: REQUEST_MEMORY}}"}},
		{name: "resources [O21]", values: "resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}", want: map[string]string{
			container + "resources": "{requests: {cpu: 1, memory: REQUEST_MEMORY}, limits: {memory: 1Gi}}",
		}},
		{name: "probes [O36]", values: "health: {port: 9000}", want: map[string]string{
			container + "livenessProbe.httpGet": "{path: /healthz, port: health}", container + "readinessProbe.httpGet": "{path: /readyz, port: health}",
			container + "ports.0": "{name: health, containerPort: 9000}",
		}},
		{name: "name for the health check of landscaper-service [O51]", values: "{nameOverride: manifest-deployer, fullnameOverride: manifest-ns-manifest-deployer}", want: map[string]string{
			"metadata.name": "manifest-ns-manifest-deployer",
		}},
		{name: "topology [O53]", want: map[string]string{
			"spec.template.metadata.labels":                 "{app.kubernetes.io/name: CHART, app.kubernetes.io/instance: rel, landscaper.gardener.cloud/topology: CHART, landscaper.gardener.cloud/topology-ns: ls-system}",
			pod + "topologySpreadConstraints.0":             "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {landscaper.gardener.cloud/topology: CHART, landscaper.gardener.cloud/topology-ns: ls-system}}}",
			pod + "topologySpreadConstraints.1.topologyKey": "kubernetes.io/hostname",
		}},
		{name: "another topology [O53]", values: "topologySpreadConstraints: [{topologyKey: rack}]", want: map[string]string{pod + "topologySpreadConstraints": "[{topologyKey: rack}]"}},
		{name: "no topology [O53]", values: "topologySpreadConstraints: []", want: map[string]string{pod + "topologySpreadConstraints": "null"}},
		{name: "additional labels, arguments, variables and volumes [O55]", values: `
extraVolumes: [{name: v, emptyDir: {}}]
extraVolumeMounts: [{name: v, mountPath: /v}]
podLabels: {a: 1, app.kubernetes.io/name: mine}
commonLabels: {c: d}
priorityClassName: p
revisionHistoryLimit: 0
hostUsers: false
runtimeClassName: r
dnsPolicy: Default
automountServiceAccountToken: false
extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}, "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}'}"]
`, want: map[string]string{
			pod + "volumes.1": "{name: v, emptyDir: {}}", container + "volumeMounts.1": "{name: v, mountPath: /v}",
			"spec.template.metadata.labels.a": "'1'", "spec.template.metadata.labels.c": "d", "metadata.labels.c": "d", "ServiceAccount metadata.labels.c": "d",
			"spec.template.metadata.labels.app~kubernetes~io/name": "CHART", "spec.selector.matchLabels": "{app.kubernetes.io/name: CHART, app.kubernetes.io/instance: rel}",
			pod + "priorityClassName": "p", "spec.revisionHistoryLimit": "0", pod + "hostUsers": "false", pod + "runtimeClassName": "r", pod + "dnsPolicy": "Default",
			pod + "automountServiceAccountToken": "false", "ConfigMap metadata.name": "x", "Service metadata.name": "rel",
		}},
		{name: "authorities [O56]", values: "caBundle: {configMap: cas}", want: map[string]string{
			pod + "volumes.1": "{name: ca-bundle, configMap: {name: cas}}", container + "volumeMounts.1": "{name: ca-bundle, mountPath: /app/ls/ca-bundle, readOnly: true}",
		}},
		{name: "network policy [O59]", values: "networkPolicy: {enabled: true, apiServerPorts: [8443]}", want: map[string]string{
			"NetworkPolicy spec.ingress.0.ports":         "[{protocol: TCP, port: health}, {protocol: TCP, port: metrics}]",
			"NetworkPolicy spec.egress.0.ports":          "[{protocol: UDP, port: 53}, {protocol: TCP, port: 53}, {protocol: TCP, port: 8443}]",
			"NetworkPolicy spec.podSelector.matchLabels": "{app.kubernetes.io/name: CHART, app.kubernetes.io/instance: rel}",
		}},
		{name: "disruption budget [O60]", values: "replicaCount: 2", want: map[string]string{
			"PodDisruptionBudget apiVersion": "policy/v1", "PodDisruptionBudget spec.maxUnavailable": "1",
			"PodDisruptionBudget spec.selector.matchLabels": "{app.kubernetes.io/name: CHART, app.kubernetes.io/instance: rel}",
		}},
		{name: "shards [Sh6]", values: "deployer: {shards: 4}", want: map[string]string{
			"StatefulSet metadata.name": "rel-CHART-4-shards", "StatefulSet spec.replicas": "4", "StatefulSet spec.serviceName": "rel-CHART-4-shards",
			"StatefulSet spec.podManagementPolicy": "Parallel", "StatefulSet spec.updateStrategy": "{type: RollingUpdate}", "StatefulSet spec.strategy": "null",
			"StatefulSet spec.selector.matchLabels": "{app.kubernetes.io/name: CHART, app.kubernetes.io/instance: rel}", "PodDisruptionBudget spec.maxUnavailable": "1",
			"StatefulSet spec.template.spec.containers.0.env.0": "{name: MY_POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}",
		}},
		{name: "standbys of shards [Sh6]", values: "{deployer: {shards: 3}, replicaCount: 2}", want: map[string]string{"StatefulSet spec.replicas": "6"}},
		{name: "shards with a long name [Sh6]", values: "{deployer: {shards: 100}, fullnameOverride: a-name-of-sixty-three-characters-with-many-words-in-it-and-more-x}", want: map[string]string{
			"StatefulSet metadata.name": "a-name-of-sixty-three-characters-with-man-100-shards",
		}},
		{name: "strategy [O16]", want: map[string]string{"spec.strategy": "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"}},
		{name: "strategy without election [O16]", values: "leaderElection: {enabled: false}", want: map[string]string{"spec.strategy": "{type: Recreate}", "spec.replicas": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				r := render(t, chart, test.values)
				for path, want := range test.want {
					kind, field, found := strings.Cut(path, " ")
					if !found {
						kind, field = deployment, path
					}
					requests := []string{"CHART", chart, "REQUEST_CPU", "100m", "REQUEST_MEMORY", "100Mi"}
					if chart == helmChart {
						requests = []string{"CHART", chart, "REQUEST_CPU", "300m", "REQUEST_MEMORY", "300Mi"}
					}
					require(t, one(t, r, kind), field, strings.NewReplacer(requests...).Replace(want))
				}
			})
		})
	}
}

// TestOmittedObjects checks that some objects are rendered only if a value requests them.
func TestOmittedObjects(t *testing.T) {
	for name, test := range map[string]struct{ values, kind string }{
		"no autoscaler by default [O15]":                         {"", "HorizontalPodAutoscaler"},
		"no autoscaler for one replica [O15]":                    {"hpa: {maxReplicas: 1}", "HorizontalPodAutoscaler"},
		"no autoscaler without values [O15]":                     {"hpa: {}", "HorizontalPodAutoscaler"},
		"no autoscaler with null [O15]":                          {"hpa: null", "HorizontalPodAutoscaler"},
		"no network policy by default [O59]":                     {"", "NetworkPolicy"},
		"no disruption budget for one replica [O60]":             {"", "PodDisruptionBudget"},
		"no disruption budget if it is off [O60]":                {"{replicaCount: 2, podDisruptionBudget: {enabled: false}}", "PodDisruptionBudget"},
		"no service account if it exists [O17]":                  {"serviceAccount: {create: false, name: mine}", "ServiceAccount"},
		"no cluster rights for an existing account [O18]":        {"serviceAccount: {create: false, name: mine}", "ClusterRole"},
		"no rights for an existing account [O18]":                {"serviceAccount: {create: false, name: mine}", "Role"},
		"no cluster rights with another cluster [O43]":           {"deployer: {landscaperClusterKubeconfig: {secretRef: s}}", "ClusterRole"},
		"no cluster bindings with another cluster [O43]":         {"deployer: {landscaperClusterKubeconfig: {kubeconfig: k}}", "ClusterRoleBinding"},
		"no program with rights for another cluster only [O44]":  {"rbac: {landscaperClusterOnly: true}", deployment},
		"no election with rights for another cluster only [O44]": {"rbac: {landscaperClusterOnly: true}", "Role"},
		"no secrets with rights for another cluster only [O44]":  {"rbac: {landscaperClusterOnly: true}", "Secret"},
		"no election without replicas [O42]":                     {"leaderElection: {enabled: false}", "Role"},
		"no Deployment with shards [Sh6]":                        {"deployer: {shards: 2}", deployment},
		"no StatefulSet with one shard [Sh6]":                    {"deployer: {shards: 1}", "StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				if found := all(render(t, chart, test.values), test.kind); len(found) > 0 {
					t.Errorf("there is %s %s", test.kind, found[0].GetName())
				}
			})
		})
	}
}

// TestRejectedValues checks that invalid values cause an error that names the value.
func TestRejectedValues(t *testing.T) {
	for name, test := range map[string]struct{ values, want string }{
		"a misspelt key of deployer [O22]":                     {"deployer: {identidy: x}", "/deployer"},
		"a misspelt key deep in deployer [O22]":                {"deployer: {controller: {worker: 1}}", "/deployer/controller"},
		"a misspelt key of hpa [O22]":                          {"hpa: {maxReplica: 1}", "/hpa"},
		"a misspelt key of image [O22]":                        {"image: {tags: x}", "/image"},
		"a misspelt key of serviceAccount [O22]":               {"serviceAccount: {crate: true}", "/serviceAccount"},
		"an unknown level [O8]":                                {"deployer: {verbosityLevel: loud}", "/deployer/verbosityLevel"},
		"replicas without election [O16]":                      {"{leaderElection: {enabled: false}, replicaCount: 2}", "leaderElection.enabled"},
		"an autoscaler without election [O16]":                 {"{leaderElection: {enabled: false}, hpa: {maxReplicas: 2}}", "leaderElection.enabled"},
		"shards without election [Sh6]":                        {"{leaderElection: {enabled: false}, deployer: {shards: 2}}", "deployer.shards"},
		"shards with an autoscaler [Sh6]":                      {"{deployer: {shards: 2}, hpa: {maxReplicas: 2}}", "deployer.shards"},
		"too many shards [Sh6]":                                {"deployer: {shards: 101}", "/deployer/shards"},
		"shards that a value sets [O38, Sh6]":                  {"extraArgs: ['--shards=2']", "extraArgs"},
		"an argument that a value sets [O38]":                  {"extraArgs: ['--grace-period=1m']", "extraArgs"},
		"an argument that a value sets, in two elements [O38]": {"extraArgs: ['--namespace', x]", "extraArgs"},
		"a grace period that is too short [O34]":               {"deployer: {gracePeriodSeconds: 0}", "/deployer/gracePeriodSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				_, err := helm.Render(helm.FindChart(chart), "rel", "ls-system", test.values)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error with %q", err, test.want)
				}
			})
		})
	}
	t.Run("unknown keys at the top level are ignored [O22]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) { render(t, chart, "{whatever: 1, global: {x: 1}}") })
	})
}

func TestNames(t *testing.T) {
	for name, test := range map[string]struct{ release, values, want, instance, app string }{
		"release and chart [O1]":       {"rel", "", "rel-CHART", "rel", "CHART"},
		"release with the chart [O1]":  {"my-CHART", "", "my-CHART", "my-CHART", "CHART"},
		"name override [O1]":           {"rel", "nameOverride: other", "rel-other", "rel", "other"},
		"full name override [O1, O50]": {"rel", "fullnameOverride: whole", "whole", "rel", "CHART"},
		"long name [O1]":               {strings.Repeat("r", 50), "", strings.Repeat("r", 50) + "-manifest-deployer"[:0], "", "CHART"},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				fill := func(text string) string { return strings.ReplaceAll(text, "CHART", chart) }
				r, err := helm.Render(helm.FindChart(chart), fill(test.release), "ls-system", fill(test.values))
				if err != nil {
					t.Fatal(err)
				}
				d := one(t, r, deployment)
				want := fill(test.want)
				if test.instance == "" {
					want = strings.TrimSuffix((test.release + "-" + chart)[:min(63, len(test.release+"-"+chart))], "-")
				} else {
					require(t, d, "spec.selector.matchLabels", fmt.Sprintf("{app.kubernetes.io/name: %s, app.kubernetes.io/instance: %s}", fill(test.app), fill(test.instance)))
				}
				if d.GetName() != want {
					t.Errorf("the Deployment is called %s, want %s", d.GetName(), want)
				}
				require(t, d, container+"name", chart)
			})
		})
	}
}

func TestServiceAccounts(t *testing.T) {
	for name, test := range map[string]struct{ values, account string }{
		"default account [O17]":                           {"", "rel-CHART"},
		"account with a name [O17]":                       {"serviceAccount: {name: mine}", "mine"},
		"account with Landscaper's suffix [O17]":          {"serviceAccount: {tmpSuffix: true}", "rel-CHART-tmp"},
		"existing account [O17]":                          {"serviceAccount: {create: false, name: mine}", "mine"},
		"existing account with Landscaper's suffix [O17]": {"serviceAccount: {create: false, name: mine, tmpSuffix: true}", "mine-tmp"},
		"existing account without a name [O17]":           {"serviceAccount: {create: false}", "default"},
		"existing account with rights [O18, O17]":         {"{serviceAccount: {create: false, name: mine}, rbac: {create: true}}", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				r := render(t, chart, test.values)
				want := strings.ReplaceAll(test.account, "CHART", chart)
				require(t, one(t, r, deployment), pod+"serviceAccountName", want)
				for _, binding := range slices.Concat(all(r, "RoleBinding"), all(r, "ClusterRoleBinding")) {
					require(t, binding, "subjects", fmt.Sprintf("[{kind: ServiceAccount, name: %s, namespace: ls-system}]", want))
				}
				if strings.Contains(test.values, "rbac") != (len(all(r, "ClusterRole")) > 0) && strings.Contains(test.values, "create: false") {
					t.Error("rights must be rendered only on request")
				}
			})
		})
	}
}
