// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/helm"
)

// item returns an item with the given fields in its configuration, in addition to those that every configuration needs.
// A field whose value is null is removed.
func item(t testing.TB, fields string) *lsv1alpha1.DeployItem {
	t.Helper()
	config := map[string]any{
		"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": "web", "namespace": "shop",
		"chart": map[string]any{"archive": map[string]any{"raw": "YQ=="}},
	}
	changed := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte("{"+fields+"}"), &changed); err != nil {
		t.Fatal(err)
	}
	for name, value := range changed {
		if string(value) == "null" {
			delete(config, name)
		} else {
			config[name] = value
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
	return di
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct{ name, fields, want string }{
		{"rejects an unknown field [E1]", `"unknown": 1`, `spec.config: unknown field "unknown"`},
		{"rejects a kubeconfig [E29]", `"kubeconfig": "a"`, "spec.config.kubeconfig: not supported"},
		{"rejects an unknown update strategy [E1]", `"updateStrategy": "delete"`, `spec.config.updateStrategy: is "delete", want one of`},
		{"rejects a missing name [E1]", `"name": null`, "spec.config.name: required"},
		{"rejects an invalid name [E1]", `"name": "Web"`, `spec.config.name: "Web" is not the name of a release`},
		{"rejects a long name [E1]", `"name": "` + strings.Repeat("a", 54) + `"`, "is not the name of a release"},
		{"rejects a missing namespace [E1]", `"namespace": null`, "spec.config.namespace: required"},
		{"rejects an invalid namespace [E1]", `"namespace": "a.b"`, `spec.config.namespace: "a.b": `},
		{"rejects a missing chart [E1]", `"chart": null`, "spec.config.chart: must have one of archive, ref, helmChartRepo and resourceRef"},
		{"rejects two sources of the chart [E1]", `"chart": {"ref": "a", "archive": {"raw": "a"}}`, "spec.config.chart: must have only one source, has archive and ref"},
		{"rejects an archive without content [E1]", `"chart": {"archive": {}}`, "spec.config.chart.archive: must have either raw or remote"},
		{"rejects a remote archive without a URL [E1]", `"chart": {"archive": {"remote": {}}}`, "spec.config.chart.archive.remote.url: required"},
		{"rejects credentials in a URL, without printing them [E1]", `"chart": {"archive": {"remote": {"url": "https://a:s3cr3t@b/c"}}}`, "spec.config.chart.archive.remote.url: must not contain credentials"},
		{"rejects a repository without a version [E1]", `"chart": {"helmChartRepo": {"helmChartRepoUrl": "a", "helmChartName": "b"}}`, "spec.config.chart.helmChartRepo.helmChartVersion: required"},
		{"rejects a chart from a component descriptor [E21]", `"chart": {"fromResource": {"resourceName": "a"}}`, "spec.config.chart.fromResource: no longer supported: use chart.resourceRef"},
		{"rejects values that are not an object [E1]", `"values": ["s3cr3t"]`, "spec.config.values: must be an object"},
		{"rejects an unknown setting of an operation [E1]", `"helmDeploymentConfig": {"install": {"x": 1}}`, "spec.config.helmDeploymentConfig.install.x: unknown field"},
		{"rejects a setting of the wrong type [E1]", `"helmDeploymentConfig": {"upgrade": {"atomic": "yes"}}`, "spec.config.helmDeploymentConfig.upgrade.atomic: must be true or false"},
		{"rejects atomic for the deletion [E1]", `"helmDeploymentConfig": {"uninstall": {"atomic": true}}`, "spec.config.helmDeploymentConfig.uninstall.atomic: unknown field"},
		{"rejects an invalid timeout [E1]", `"helmDeploymentConfig": {"install": {"timeout": 5}}`, `spec.config.helmDeploymentConfig.install.timeout: must be a duration such as "5m"`},
		{"rejects a negative timeout [E1]", `"helmDeploymentConfig": {"install": {"timeout": "-1s"}}`, "spec.config.helmDeploymentConfig.install.timeout: is -1s, must not be negative"},
		{"rejects deletion groups in Helm mode [E18]", `"deletionGroups": [{"predefinedResourceGroup": {"type": "empty"}}]`, "spec.config.deletionGroups: is supported only if helmDeployment is false"},
		{"rejects deletion groups during updates in Helm mode [E18]", `"deletionGroupsDuringUpdate": [{"predefinedResourceGroup": {"type": "empty"}}]`, "spec.config.deletionGroupsDuringUpdate: is supported only if helmDeployment is false"},
		{"validates deletion groups [E18]", `"helmDeployment": false, "deletionGroups": [{"predefinedResourceGroup": {"type": "x"}}]`, "spec.config.deletionGroups[0].predefinedResourceGroup.type: is "},
		{"validates deletion groups during updates [E18]", `"helmDeployment": false, "deletionGroupsDuringUpdate": [{}]`, "spec.config.deletionGroupsDuringUpdate[0]: must have either"},
		{"rejects a deprecated export without an object [E17]", `"exportsFromManifests": [{"key": "a", "jsonPath": "b"}]`, "spec.config.exportsFromManifests[0].fromResource: required"},
		{"rejects an invalid path of an export [E16]", `"exports": {"exports": [{"key": "a", "jsonPath": ""}]}`, "spec.config.exports.exports[0].jsonPath: "},
		{"rejects an unknown policy for definitions [Ex22]", `"deployerkit": {"crds": {"install": "Replace"}}`, `spec.config.deployerkit.crds.install: is "Replace", want one of`},
		{"rejects the deletion of definitions in Helm mode [E26]", `"deployerkit": {"crds": {"delete": true}}`, "spec.config.deployerkit.crds.delete: is supported only if helmDeployment is false"},
		{"rejects a contradiction between the policies for definitions [E26]", `"helmDeployment": false, "deployerkit": {"crds": {"delete": true, "upgrade": "Skip"}}`, `spec.config.deployerkit.crds.upgrade: is "Skip", must be`},
		{"rejects hooks as objects in Helm mode", `"deployerkit": {"hooks": "apply"}`, "spec.config.deployerkit.hooks: is supported only if helmDeployment is false"},
		{"rejects a keyring without a name [Ex33]", `"deployerkit": {"verify": {}}`, "spec.config.deployerkit.verify.name: required"},
		{"rejects an unknown mode for drift [Ex21]", `"deployerkit": {"drift": {"mode": "x"}}`, `spec.config.deployerkit.drift.mode: is "x", want one of`},
		{"rejects an invalid path for drift [Ex21]", `"deployerkit": {"drift": {"ignore": [{}, {"paths": ["/a", "spec.replicas"]}]}}`, `spec.config.deployerkit.drift.ignore[1].paths[1]: "spec.replicas" is not a JSON pointer`},
		{"rejects an invalid selector for drift [Ex21]", `"deployerkit": {"drift": {"ignore": [{"labelSelector": "a in b"}]}}`, `spec.config.deployerkit.drift.ignore[0].labelSelector: "a in b" is not a label selector`},
		{"rejects too many rules for drift [Ex21]", `"deployerkit": {"drift": {"ignore": [{}` + strings.Repeat(", {}", 100) + `]}}`, "spec.config.deployerkit.drift.ignore: has 101 rules, at most 100 are allowed"},
		{"rejects tests in manifest mode [Ex23]", `"helmDeployment": false, "deployerkit": {"test": {"enable": true}}`, "spec.config.deployerkit.test.enable: is supported only if helmDeployment is true"},
		{"rejects a selection of tests that do not run [Ex23]", `"deployerkit": {"test": {"include": ["a"]}}`, "spec.config.deployerkit.test: has include or exclude, but enable is false"},
		{"rejects an unknown field of the extension [E1]", `"deployerkit": {"x": 1}`, `spec.config: unknown field "deployerkit.x"`},
		{"rejects an invalid schedule [E19]", `"continuousReconcile": {"cron": "x"}`, "spec.config.continuousReconcile: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := helm.Decode(item(t, test.fields), helm.Options{})
			if err == nil {
				t.Fatal("there is no error")
			}
			if codes := contract.ErrorCodes(err); !contract.HasUnrecoverableCode(codes) || len(codes) != 1 {
				t.Errorf("the codes are %v, want %s", codes, lsv1alpha1.ErrorConfigurationProblem)
			}
			text := err.(*lserrors.Error).LandscaperError().Message //nolint:errorlint,forcetypeassert // a ConfigError has this type
			if !strings.HasPrefix(text, test.want) && !strings.Contains(text, test.want) {
				t.Errorf("the error is %q, want %q", text, test.want)
			}
			if strings.Contains(text, "s3cr3t") || strings.Contains(text, "\n") {
				t.Errorf("the error %q contains a secret or several lines", text)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Run("sets the defaults [E1]", func(t *testing.T) {
		config, err := helm.Decode(item(t, ""), helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !config.HelmDeployment || config.Strategy != apply.StrategyApply || config.Values == nil || config.CreateNamespace {
			t.Errorf("unexpected defaults: %+v", config)
		}
	})
	t.Run("decodes all settings of operations [E1]", func(t *testing.T) {
		config, err := helm.Decode(item(t, `"helmDeploymentConfig": {
			"install": {"atomic": true, "force": true, "skipSchemaValidation": true, "takeOwnership": true, "timeout": "5m", "wait": true},
			"upgrade": {"wait": false, "timeout": "none"}, "uninstall": {"timeout": "1m", "wait": true}}`), helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := helm.OperationConfig{Atomic: true, Force: true, SkipSchemaValidation: true, TakeOwnership: true, Timeout: 5 * time.Minute, Wait: true}
		if diff := cmp.Diff(want, config.Install); diff != "" {
			t.Errorf("unexpected settings of the installation (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(helm.OperationConfig{}, config.Upgrade); diff != "" {
			t.Errorf("unexpected settings of the upgrade (-want +got):\n%s", diff)
		}
		if config.Uninstall.Timeout != time.Minute {
			t.Errorf("the timeout of the deletion is %s, want 1m", config.Uninstall.Timeout)
		}
	})
	t.Run("decodes the timeouts of earlier versions [E29]", func(t *testing.T) {
		config, err := helm.Decode(item(t, `"deleteTimeout": "3m", "readinessChecks": {"timeout": "2m"}, "exports": {"defaultTimeout": "4m", "exports": [
			{"key": "a", "jsonPath": "b", "fromResource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "d"}},
			{"key": "b", "jsonPath": "b", "timeout": "5m", "fromResource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "d"}}]}`), helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := []time.Duration{config.DeleteTimeout, config.ReadinessTimeout, config.Exports[0].Timeout, config.Exports[1].Timeout}
		if diff := cmp.Diff([]time.Duration{3 * time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}, got); diff != "" {
			t.Errorf("unexpected timeouts (-want +got):\n%s", diff)
		}
	})
	t.Run("merges the deprecated exports with the others [E17]", func(t *testing.T) {
		config, err := helm.Decode(item(t, `"exports": {"exports": [{"key": "a", "jsonPath": ".Values.a"}]}, "exportsFromManifests": [
			{"key": "b", "jsonPath": "c", "fromResource": {"apiVersion": "v1", "kind": "Namespace", "name": "d"}}]`), helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(config.Exports) != 2 || config.Exports[1].Key != "b" {
			t.Errorf("the exports are %v, want a and b", config.Exports)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"chart": {"ref": "a"}, "name": "a", "namespace": "b"}`)
	f.Add(`{"values": {"a": 1e400}, "helmDeploymentConfig": {"install": {"timeout": null}}}`)
	f.Fuzz(func(t *testing.T, fields string) {
		di := &lsv1alpha1.DeployItem{}
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",` + strings.TrimPrefix(fields, "{"))}
		config, err := helm.Decode(di, helm.Options{})
		switch {
		case err == nil && config.Values == nil:
			t.Error("the values are nil")
		case err != nil && !contract.HasUnrecoverableCode(contract.ErrorCodes(err)):
			t.Errorf("the error %v has no code", err)
		}
	})
}
