// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

func TestArguments(t *testing.T) {
	for name, test := range map[string]struct {
		values  string
		with    []string
		without []string
		targets bool // the row applies only to the charts of deployers that apply objects to targets
	}{
		"default arguments [O38]":               {values: "", with: []string{"--config=/app/ls/config/config.yaml", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8080", "--grace-period=30s"}, without: []string{"--leader-elect", "--landscaper-kubeconfig", "--namespace", "-v"}},
		"level in capitals [O8]":                {values: "deployer: {verbosityLevel: DEBUG}", with: []string{"-v=DEBUG"}},
		"level as a number [O8]":                {values: "deployer: {verbosityLevel: 0}", with: []string{"-v=0"}},
		"level as a number in quotes [O8]":      {values: "deployer: {verbosityLevel: '2'}", with: []string{"-v=2"}},
		"level error [O8, O66]":                 {values: "deployer: {verbosityLevel: error}", with: []string{"-v=error"}},
		"namespace without effect [O7, O66]":    {values: "deployer: {namespace: x}", without: []string{"--namespace"}},
		"one namespace [O46]":                   {values: "deployer: {watchNamespace: x}", with: []string{"--namespace=x"}},
		"kubeconfig inline [O4]":                {values: "deployer: {landscaperClusterKubeconfig: {kubeconfig: k, secretRef: s}}", with: []string{"--landscaper-kubeconfig=/app/ls/landscaper-cluster-kubeconfig/kubeconfig"}},
		"kubeconfig in a secret [O5]":           {values: "deployer: {landscaperClusterKubeconfig: {secretRef: s}}", with: []string{"--landscaper-kubeconfig=/app/ls/landscaper-cluster-kubeconfig/kubeconfig"}},
		"no election [O16]":                     {values: "leaderElection: {enabled: false}", with: []string{"--leader-elect=false"}},
		"shards [Sh6]":                          {values: "deployer: {shards: 4}", with: []string{"--shards=4"}, without: []string{"--shard="}},
		"no metrics [O38]":                      {values: "metrics: {enabled: false}", with: []string{"--metrics-bind-address=0"}},
		"ports [O36, O38]":                      {values: "{metrics: {port: 1}, health: {port: 2}}", with: []string{"--metrics-bind-address=:1", "--health-probe-bind-address=:2"}},
		"selector, grace and others [O38, O55]": {values: "{deployer: {itemSelector: 'a=b,c', gracePeriodSeconds: 60}, extraArgs: [--target-share=0.3]}", with: []string{"--item-selector=a=b,c", "--grace-period=60s", "--target-share=0.3"}},
		"update strategy by default [O37]":      {targets: true, with: []string{"--default-strategy=apply"}},
		"update strategy [O37]":                 {targets: true, values: "deployer: {updateStrategy: update, recreate: true}", with: []string{"--default-strategy=update", "--recreate"}},
		"targets are strict [O38]":              {targets: true, without: []string{"--allow", "--enable", "--recreate"}},
		"targets [O38]":                         {targets: true, values: "deployer: {targets: {allowInsecureTLS: true, allowHTTP: true, allowProxy: true, allowPrivateHosts: true, allowForeignSecrets: true, enableOIDC: true, enableSelf: true, landscaperAudiences: [a, b]}}", with: []string{"--allow-insecure-tls", "--allow-http", "--allow-proxy", "--allow-private-hosts", "--allow-foreign-secrets", "--enable-oidc-targets", "--enable-self-targets", "--landscaper-audiences=a,b"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				if test.targets && chart == mockChart {
					return
				}
				got := args(t, render(t, chart, test.values))
				for _, want := range test.with {
					if !slices.Contains(got, want) {
						t.Errorf("%s is not among %q", want, got)
					}
				}
				for _, prefix := range test.without {
					if slices.ContainsFunc(got, func(arg string) bool { return strings.HasPrefix(arg, prefix) }) {
						t.Errorf("%s is among %q", prefix, got)
					}
				}
			})
		})
	}
}

func TestEnvironment(t *testing.T) {
	throttled := map[string]string{"LS_HOST_CLIENT_BURST": "30", "LS_HOST_CLIENT_QPS": "20", "LS_RESOURCE_CLIENT_BURST": "60", "LS_RESOURCE_CLIENT_QPS": "40"}
	for name, test := range map[string]struct {
		values string
		want   map[string]string
	}{
		"Landscaper's limits by default [O11]": {"", nil},
		"limits that are null [O11]":           {"deployer: {k8sClientSettings: null}", nil},
		"limits that are partly null [O11]":    {"deployer: {k8sClientSettings: {hostClient: null, resourceClient: {qps: null}}}", nil},
		"limits [O11]":                         {"deployer: {k8sClientSettings: {hostClient: {burst: 1, qps: 2}, resourceClient: {burst: 3, qps: 4}}}", map[string]string{"LS_HOST_CLIENT_BURST": "1", "LS_HOST_CLIENT_QPS": "2", "LS_RESOURCE_CLIENT_BURST": "3", "LS_RESOURCE_CLIENT_QPS": "4"}},
		"proxies [O56]":                        {"proxy: {httpProxy: 'http://p', httpsProxy: 'http://q', noProxy: .svc}", map[string]string{"HTTP_PROXY": "http://p", "HTTPS_PROXY": "http://q", "NO_PROXY": ".svc"}},
		"authorities [O56]":                    {"caBundle: {secret: s}", map[string]string{"SSL_CERT_DIR": "/app/ls/ca-bundle"}},
		"additional variables [O55]":           {"extraEnv: [{name: X, value: z}]", map[string]string{"X": "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachChart(t, func(t *testing.T, chart string) {
				want := maps.Clone(throttled)
				maps.Copy(want, test.want)
				if diff := cmp.Diff(want, getEnv(t, render(t, chart, test.values))); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestConfiguration checks that Landscaper's decoder reads the values from the rendered configuration file, and that
// the file contains no other fields.
func TestConfiguration(t *testing.T) {
	selector := "[{targets: [{name: t, namespace: ns}], annotations: [{key: a, operator: notin, values: [u, w]}], labels: [{key: b, operator: exists}, {key: c, operator: '=', values: [v]}]}]"
	var selectors []lsv1alpha1.TargetSelector
	if err := yaml.UnmarshalStrict([]byte(selector), &selectors); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{helmv1alpha1.AddToScheme, manifestv1alpha2.AddToScheme, mockv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, values := range map[string]string{
		"no values [O6, O9, O10, O23]":  "",
		"all values [O6, O9, O10, O23]": "{identity: no, useOCMLib: true, hpa: {maxReplicas: 3}, deployer: {namespace: none, identity: me, controller: {workers: 7, cacheSyncTimeout: 3m}, targetSelector: " + selector + "}}",
		"null as the controller [O10]":  "deployer: {controller: null}",
	} {
		t.Run(name, func(t *testing.T) {
			isSet := strings.Contains(values, "identity")
			r := render(t, manifestChart, values)
			file := getConfiguration(t, r)
			object, _, err := decoder.Decode([]byte(file), nil, nil)
			if err != nil {
				t.Fatalf("%v in:\n%s", err, file)
			}
			config := object.(*manifestv1alpha2.Configuration)
			if strings.Contains(file, "identity") != isSet || isSet && (config.Identity != "me" || config.Controller.Workers != 7 || config.Controller.CacheSyncTimeout.Duration.String() != "3m0s") {
				t.Errorf("the file is\n%s", file)
			}
			if !isSet && config.Controller.Workers != 30 {
				t.Errorf("there are %d workers", config.Controller.Workers)
			}
			if diff := cmp.Diff(selectors, config.TargetSelector); isSet && diff != "" || !isSet && len(config.TargetSelector) > 0 {
				t.Errorf("selectors: -want +got:\n%s", diff)
			}
		})
	}
	t.Run("the mock deployer gets its workers as an argument [O23, O66, O10]", func(t *testing.T) {
		r := render(t, mockChart, "deployer: {namespace: none, identity: me, controller: {workers: 7}, targetSelector: "+selector+"}")
		object, _, err := decoder.Decode([]byte(getConfiguration(t, r)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		config := object.(*mockv1alpha1.Configuration)
		if diff := cmp.Diff(selectors, config.TargetSelector); diff != "" || config.Identity != "me" || !slices.Contains(args(t, r), "--workers=7") {
			t.Errorf("configuration = %+v, want identity me and the selectors", config)
		}
	})
}

func TestHelmConfiguration(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := helmv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	getConfig := func(t *testing.T, r *helm.Rendered) *helmv1alpha1.Configuration {
		t.Helper()
		object, _, err := decoder.Decode([]byte(getConfiguration(t, r)), nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, getConfiguration(t, r))
		}
		return object.(*helmv1alpha1.Configuration)
	}
	t.Run("registries without credentials [E30]", func(t *testing.T) {
		r := render(t, helmChart, "deployer: {identity: me, controller: {workers: 7}, oci: {secrets: null}}")
		config := getConfig(t, r)
		if config.Identity != "me" || config.Controller.Workers != 7 || config.OCI == nil || config.OCI.AllowPlainHttp || len(config.OCI.ConfigFiles) > 0 {
			t.Errorf("the configuration is %+v", config)
		}
		if len(all(r, "Secret")) != 1 {
			t.Error("there is a Secret for credentials")
		}
	})
	t.Run("credentials become a Secret, whose files the configuration names [E30]", func(t *testing.T) {
		r := render(t, helmChart, `deployer: {oci: {allowPlainHttp: true, secrets: {harbor: {auths: {a.example: {auth: eDp5}}}, text: '{"auths": {}}'}}}`)
		config := getConfig(t, r)
		if diff := cmp.Diff([]string{"/app/ls/registry/secrets/harbor", "/app/ls/registry/secrets/text"}, config.OCI.ConfigFiles); diff != "" || !config.OCI.AllowPlainHttp {
			t.Errorf("-want +got:\n%s", diff)
		}
		content := map[string]string{}
		for _, secret := range all(r, "Secret") {
			if secret.GetName() == "rel-helm-deployer-registries" {
				content["harbor"], content["text"] = getSecretData(t, secret, "harbor"), getSecretData(t, secret, "text")
			}
		}
		if diff := cmp.Diff(map[string]string{"harbor": `{"auths":{"a.example":{"auth":"eDp5"}}}`, "text": `{"auths": {}}`}, content); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		require(t, one(t, r, deployment), pod+"volumes.1", "{name: registries, secret: {secretName: rel-helm-deployer-registries}}")
		require(t, one(t, r, deployment), container+"volumeMounts.1", "{name: registries, mountPath: /app/ls/registry/secrets, readOnly: true}")
	})
	t.Run("an insecure access to all hosts is rejected [E30]", func(t *testing.T) {
		_, err := helm.Render(helm.FindChart(helmChart), "rel", "ls-system", "deployer: {oci: {insecureSkipVerify: true}}")
		if err == nil || !strings.Contains(err.Error(), "apply only to the hosts in deployer.oci.secrets") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("settings of hosts are arguments [E30]", func(t *testing.T) {
		got := args(t, render(t, helmChart, "deployer: {charts: {hosts: ['a.example:private,ca=/x', 'b.example:5000:plain-http'], allowPrivateHosts: true}}"))
		for _, want := range []string{"--chart-host=a.example:private,ca=/x", "--chart-host=b.example:5000:plain-http", "--allow-private-chart-hosts"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s is not among %q", want, got)
			}
		}
	})
}

func TestKubeconfig(t *testing.T) {
	eachChart(t, func(t *testing.T, chart string) {
		t.Run("an inline kubeconfig becomes a Secret and precedes a reference [O4]", func(t *testing.T) {
			r := render(t, chart, "deployer: {landscaperClusterKubeconfig: {kubeconfig: content, secretRef: s}}")
			name := "rel-" + chart + "-landscaper-cluster-kubeconfig"
			content := ""
			for _, secret := range all(r, "Secret") {
				if secret.GetName() == name {
					content = getSecretData(t, secret, "kubeconfig")
				}
			}
			if content != "content" {
				t.Errorf("the Secret has %q", content)
			}
			require(t, one(t, r, deployment), pod+"volumes.1", "{name: landscaper-cluster-kubeconfig, secret: {secretName: "+name+"}}")
			require(t, one(t, r, deployment), container+"volumeMounts.1", "{name: landscaper-cluster-kubeconfig, mountPath: /app/ls/landscaper-cluster-kubeconfig, readOnly: true}")
		})
		t.Run("a kubeconfig in a Secret is referenced by name [O5]", func(t *testing.T) {
			r := render(t, chart, "deployer: {landscaperClusterKubeconfig: {secretRef: s}}")
			require(t, one(t, r, deployment), pod+"volumes.1.secret.secretName", "s")
			if len(all(r, "Secret")) != 1 {
				t.Error("there is a Secret for it")
			}
		})
		t.Run("Pods are replaced when the file or the configuration changes [O54]", func(t *testing.T) {
			seen := map[string]bool{}
			for _, values := range []string{"", "deployer: {identity: a}", "deployer: {landscaperClusterKubeconfig: {kubeconfig: a}}", "deployer: {landscaperClusterKubeconfig: {kubeconfig: b}}"} {
				seen[toYAML(t, getPath(one(t, render(t, chart, values), deployment), "spec.template.metadata.annotations"))] = true
			}
			if len(seen) != 4 {
				t.Errorf("the annotations are %v", seen)
			}
		})
	})
}

func TestTermination(t *testing.T) {
	t.Run("a Pod gets twice the grace period and 15 seconds [O34]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			for values, want := range map[string]string{"": "80", "deployer: {gracePeriodSeconds: 1}": "22", "deployer: {gracePeriodSeconds: 3600}": "7220", "deployer: null": "80"} {
				require(t, one(t, render(t, chart, values), deployment), pod+"terminationGracePeriodSeconds", want)
			}
		})
	})
}

func TestNotes(t *testing.T) {
	for name, test := range map[string]struct{ chart, values, want string }{
		"update strategy [O37]":                      {manifestChart, "", "specifies no update strategy, the strategy is apply (deployer.updateStrategy). With Landscaper's own manifest deployer, it is update"},
		"another update strategy [O37]":              {manifestChart, "deployer: {updateStrategy: merge}", "specifies no update strategy, the strategy is merge"},
		"update strategy of the Helm deployer [O37]": {helmChart, "", "a deploy item with helmDeployment: false specifies no update strategy, the strategy is apply (deployer.updateStrategy). With Landscaper's own Helm deployer, it is update"},
		"identity at the top [O3]":                   {manifestChart, "identity: x", "The value identity has no effect"},
		"identity at the top, of the mock [O3]":      {mockChart, "identity: x", "The value identity has no effect"},
		"useOCMLib [O3]":                             {mockChart, "useOCMLib: false", "The value useOCMLib has no effect"},
		"namespace [O7]":                             {mockChart, "deployer: {namespace: x}", "The value deployer.namespace has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			if notes := render(t, test.chart, test.values).Notes; !strings.Contains(notes, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, notes)
			}
		})
	}
	t.Run("values without an effect change nothing [O3]", func(t *testing.T) {
		eachChart(t, func(t *testing.T, chart string) {
			if diff := cmp.Diff(render(t, chart, "").Manifest, render(t, chart, "{identity: x, useOCMLib: true}").Manifest); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// toYAML returns a value as YAML.
func toYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
