// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/contract"
)

const (
	v1 = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha1\nkind: ProviderConfiguration\n"
	v2 = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: ProviderConfiguration\n"

	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}"
)

// itemWith returns an item with a configuration in YAML.
func itemWith(t *testing.T, config string) *lsv1alpha1.DeployItem {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(config))
	if err != nil {
		t.Fatalf("%s: %v", config, err)
	}
	return itemOf(raw)
}

func itemOf(raw []byte) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = "ns", "item"
	di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
	return di
}

// equal compares configurations. It compares raw JSON by its meaning, and checks by their content.
var equal = cmp.Options{
	cmp.Comparer(func(a, b runtime.RawExtension) bool { return sameJSON(a.Raw, b.Raw) }),
	cmpopts.IgnoreUnexported(readiness.Check{}, Export{}),
	cmpopts.EquateEmpty(),
}

// sameJSON compares by meaning, and numbers by every digit.
func sameJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := exact(a)
	y, errY := exact(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y) // cmp takes too long on deep lists
}

func exact(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func example(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestDecodeEverything(t *testing.T) {
	want := func(version string) *Config {
		raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
		name := "other"
		config := &Config{
			Strategy: manifestv1alpha2.UpdateStrategyMerge,
			Manifests: []managedresource.Manifest{
				{Policy: managedresource.ManagePolicy, Manifest: raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"k":"v"}}`)},
				{Policy: managedresource.ManagePolicy, Manifest: raw(`{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"db","namespace":"ns"},"spec":{"big":9007199254740993}}`)},
			},
			DisableDefaultReadiness: true,
			ReadinessTimeout:        3 * time.Minute,
			DeleteTimeout:           2 * time.Minute,
			DeletionGroups: []managedresource.DeletionGroupDefinition{
				{PredefinedResourceGroup: &managedresource.PredefinedResourceGroup{Type: "namespaced-resources", ForceDelete: true}},
				{CustomResourceGroup: &managedresource.CustomResourceGroup{
					Resources:          []managedresource.ResourceType{{APIVersion: "v1", Kind: "Namespace", Names: []string{"ns"}}},
					DeleteAllResources: true, TargetName: &name,
				}},
			},
			DeletionGroupsDuringUpdate: []managedresource.DeletionGroupDefinition{
				{PredefinedResourceGroup: &managedresource.PredefinedResourceGroup{Type: "empty"}},
			},
		}
		from := &lsv1alpha1.TypedObjectReference{APIVersion: "example.com/v1", Kind: "Database", ObjectReference: lsv1alpha1.ObjectReference{Name: "db", Namespace: "ns"}}
		config.Exports = []Export{
			{Export: managedresource.Export{Key: "database.url", JSONPath: "status.url", FromResource: from}, Timeout: time.Minute},
			{Export: managedresource.Export{
				Key: "database.password", JSONPath: "spec.secretRef", FromResource: from, TargetName: &name,
				FromObjectReference: &managedresource.FromObjectReference{APIVersion: "v1", Kind: "Secret", JSONPath: "data.password"},
			}, Timeout: 5 * time.Minute},
		}
		config.Checks = []Check{{Timeout: time.Minute}}
		if version == v2 {
			config.ContinuousReconcile = (&wireSchedule{Every: &duration{value: time.Hour}}).schedule()
			config.Manifests[1] = managedresource.Manifest{
				Policy: managedresource.KeepPolicy, Manifest: config.Manifests[1].Manifest,
				AnnotateBeforeCreate: map[string]string{"example.com/a": "b"}, AnnotateBeforeDelete: map[string]string{"example.com/c": "d"},
				PatchAfterDeployment: raw(`{"spec":{"x":1}}`), PatchBeforeDelete: raw(`{"spec":{"x":null}}`),
			}
		}
		return config
	}
	for name, tc := range map[string]struct{ file, version string }{
		"loses nothing of v1alpha1 [H-28][D9][D10][D13][D14]": {"v1alpha1.yaml", v1},
		"reads every field of v1alpha2 [D8][D9][D10][D13][D14]": {
			"v1alpha2.yaml", v2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(itemWith(t, example(t, tc.file)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			wanted := want(tc.version)
			if len(got.Checks) != 1 || got.Checks[0].Spec.Name != "database is up" || len(got.Checks[0].Spec.Requirements) != 1 || len(got.Checks[0].Spec.Resource) != 1 ||
				got.Checks[0].Spec.LabelSelector == nil || !got.Checks[0].Spec.Disabled || *got.Checks[0].Spec.TargetName != "other" {
				t.Errorf("Decode(...): check %+v", got.Checks)
			}
			wanted.Checks[0].Check = got.Checks[0].Check
			if diff := cmp.Diff(wanted, got, equal); diff != "" {
				t.Errorf("Decode(...): -want, +got:\n%s", diff)
			}
			again(t, got)
		})
	}
}

// again encodes a configuration, decodes the result, and requires that it is the same.
func again(t *testing.T, config *Config) {
	t.Helper()
	raw, err := config.Encode()
	if err != nil {
		t.Fatalf("Encode(): %v", err)
	}
	got, err := Decode(itemOf(raw), Options{})
	if err != nil {
		t.Fatalf("Decode(Encode(config)): %v\n%s", err, raw)
	}
	if diff := cmp.Diff(config, got, equal); diff != "" {
		t.Errorf("Decode(Encode(config)): -want, +got:\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		config string
		opts   Options
		want   Config
	}{
		"OursWhenTheItemSaysNothing [D9]": {
			reason: "Not update, which defaulting by the API module would set.",
			config: v2, want: Config{Strategy: StrategyApply},
		},
		"OptionWhenTheItemSaysNothing [D9]": {
			reason: "The operator chooses the default.",
			config: v1, opts: Options{Strategy: "update"}, want: Config{Strategy: "update"},
		},
		"TheItemWins [D9]": {
			reason: "What the item says holds.",
			config: v2 + "updateStrategy: patch", opts: Options{Strategy: "update"}, want: Config{Strategy: "patch"},
		},
		"ApplyByName [D9]": {
			reason: "The item may ask for ours by name.",
			config: v1 + "updateStrategy: apply", opts: Options{Strategy: "update"}, want: Config{Strategy: "apply"},
		},
		"Policy [D8]": {
			reason: "A manifest without policy is managed.",
			config: v2 + "manifests: [{manifest: " + configMap + "}]",
			want: Config{Strategy: StrategyApply, Manifests: []managedresource.Manifest{{
				Policy: managedresource.ManagePolicy, Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`)},
			}}},
		},
		"NoBounds [D10][D12]": {
			reason: "None is no bound, and so is nothing.",
			config: v2 + "deleteTimeout: none\nreadinessChecks: {timeout: 0s}\nexports: {}",
			want:   Config{Strategy: StrategyApply},
		},
		"EmptySchedule": {
			reason: "An empty schedule is none.",
			config: v2 + "continuousReconcile: {}", want: Config{Strategy: StrategyApply},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(itemWith(t, tc.config), tc.opts)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(&tc.want, got, equal); diff != "" {
				t.Errorf("%s\nDecode(...): -want, +got:\n%s", tc.reason, diff)
			}
			again(t, got)
		})
	}
}

func TestExportTimeouts(t *testing.T) {
	const export = "{key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}"
	for name, tc := range map[string]struct {
		exports string
		want    time.Duration
	}{
		"Own":      {"{defaultTimeout: 2m, exports: [" + export + ", timeout: 1m}]}", time.Minute},
		"Default":  {"{defaultTimeout: 2m, exports: [" + export + "}]}", 2 * time.Minute},
		"Deployer": {"{exports: [" + export + "}]}", 3 * time.Minute},
	} {
		t.Run(name+" [D14]", func(t *testing.T) {
			got, err := Decode(itemWith(t, v2+"exports: "+tc.exports), Options{ExportTimeout: 3 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if got.Exports[0].Timeout != tc.want {
				t.Errorf("Decode(...): want %s, got %s", tc.want, got.Exports[0].Timeout)
			}
		})
	}
}

func refused(t *testing.T, config, path string) {
	t.Helper()
	_, err := Decode(itemWith(t, config), Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Decode(...): want an error with %q, got %v", path, err)
	}
	if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.Codes(err)); diff != "" {
		t.Errorf("Codes(err): -want, +got:\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ config, path string }{
		"OtherKind [H-29]":         {"apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\nkind: ProviderConfiguration", "spec.config: is mock"},
		"Configuration [H-29]":     {"apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration", "spec.config: is manifest"},
		"UnknownField [H-29]":      {v2 + "updateStrategie: update", `unknown field "updateStrategie"`},
		"UnknownFieldOld [H-29]":   {v1 + "updateStrategie: update", `unknown field "updateStrategie"`},
		"UnknownInside [H-29]":     {v2 + "manifests: [{polici: keep}]", `unknown field "manifests[0].polici"`},
		"UnknownDeep [H-29]":       {v2 + "readinessChecks: {custom: [{name: a, requirements: [{path: a}]}]}", `unknown field "readinessChecks.custom[0].requirements[0].path"`},
		"UnknownInExport [H-29]":   {v2 + "exports: {exports: [{keys: a}]}", `unknown field "exports.exports[0].keys"`},
		"OtherCase [H-29]":         {v2 + "UpdateStrategy: update", `unknown field "UpdateStrategy"`},
		"WrongType [H-29]":         {v2 + "manifests: 7", "manifests"},
		"WrongTypeInside [H-29]":   {v2 + "readinessChecks: {disableDefault: 7}", "readinessChecks.disableDefault"},
		"NewFieldInOld [H-29]":     {v1 + "continuousReconcile: {every: 1h}", "spec.config.continuousReconcile: unknown field in v1alpha1"},
		"Kubeconfig [D16]":         {v2 + "kubeconfig: e30=", "spec.config.kubeconfig: not supported: put the kubeconfig into a Target"},
		"KubeconfigOld [D16]":      {v1 + "kubeconfig: e30=", "spec.config.kubeconfig: not supported"},
		"Strategy [D9][H-29]":      {v2 + "updateStrategy: replace", `spec.config.updateStrategy: is "replace"`},
		"StrategyOld [D9][H-29]":   {v1 + "updateStrategy: Update", `spec.config.updateStrategy: is "Update"`},
		"DeleteTimeout [D10]":      {v2 + "deleteTimeout: 3", `spec.config.deleteTimeout: is 3, want a duration`},
		"DeleteTimeoutNeg [D10]":   {v2 + "deleteTimeout: -3m", `spec.config.deleteTimeout: is -3m0s`},
		"ReadinessTimeout [D12]":   {v2 + "readinessChecks: {timeout: soon}", `spec.config.readinessChecks.timeout: is "soon"`},
		"Check [D13][H-29]":        {v2 + "readinessChecks: {custom: [{name: a}]}", "spec.config.readinessChecks.custom[0].resourceSelector: required"},
		"CheckOperator [D13]":      {v1 + "readinessChecks: {custom: [{name: a, resourceSelector: [{apiVersion: v1, kind: Pod, name: a}], requirements: [{jsonPath: a, operator: gt}]}]}", "spec.config.readinessChecks.custom[0].requirements[0].operator"},
		"CheckTimeout [D13]":       {v2 + "readinessChecks: {custom: [{name: a, timeout: x, resourceSelector: [{apiVersion: v1, kind: Pod, name: a}], requirements: [{jsonPath: a, operator: exists}]}]}", "spec.config.readinessChecks.custom[0].timeout"},
		"ScheduleTwice":            {v2 + "continuousReconcile: {every: 1h, cron: '@daily'}", "spec.config.continuousReconcile"},
		"ScheduleEvery":            {v2 + "continuousReconcile: {every: often}", "spec.config.continuousReconcile.every"},
		"ExportNoKey [D14][H-29]":  {v2 + "exports: {exports: [{jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].key"},
		"ExportKey [D14][H-29]":    {v2 + "exports: {exports: [{key: 'a[0]', jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].key"},
		"ExportPath [D14][H-29]":   {v2 + "exports: {exports: [{key: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].jsonPath"},
		"ExportSource [D14][H-33]": {v2 + "exports: {exports: [{key: a, jsonPath: a}]}", "spec.config.exports.exports[0].fromResource: required"},
		"ExportKind [D14][H-29]":   {v1 + "exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, name: a}}]}", "spec.config.exports.exports[0].fromResource.kind"},
		"ExportName [D14][H-29]":   {v2 + "exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod}}]}", "spec.config.exports.exports[0].fromResource.name"},
		"ExportTarget [D14][H-29]": {v2 + "exports: {exports: [{key: a, jsonPath: a, targetName: '', fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].targetName"},
		"ExportRef [D14][H-29]":    {v2 + "exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}, fromObjectRef: {kind: Secret, jsonPath: b}}]}", "spec.config.exports.exports[0].fromObjectRef.apiVersion"},
		"ExportRefPath [D14]":      {v2 + "exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}, fromObjectRef: {apiVersion: v1, kind: Secret}}]}", "spec.config.exports.exports[0].fromObjectRef.jsonPath"},
		"ExportTimeout [D14]":      {v2 + "exports: {exports: [{key: a, timeout: x, jsonPath: a}]}", "spec.config.exports.exports[0].timeout"},
		"ExportsTimeout [D14]":     {v2 + "exports: {defaultTimeout: x}", "spec.config.exports.defaultTimeout"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, tc.config, tc.path) })
	}
	t.Run("Duplicate [H-29]", func(t *testing.T) {
		_, err := Decode(itemOf([]byte(`{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderConfiguration","updateStrategy":"update","updateStrategy":"patch"}`)), Options{})
		if err == nil || !strings.Contains(err.Error(), `duplicate field "updateStrategy"`) {
			t.Errorf("Decode(...): got %v", err)
		}
	})
	t.Run("Nothing", func(t *testing.T) {
		if _, err := Decode(&lsv1alpha1.DeployItem{}, Options{}); err == nil || !strings.Contains(err.Error(), "spec.config: required") {
			t.Errorf("Decode(...): got %v", err)
		}
	})
	t.Run("BadDefault", func(t *testing.T) {
		if _, err := Decode(itemWith(t, v2), Options{Strategy: "x"}); err == nil {
			t.Error("Decode(...): an unknown default is refused too")
		}
	})
}
