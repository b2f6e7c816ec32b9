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
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/managed/resources"
)

const (
	v1 = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha1\nkind: ProviderConfiguration\n"
	v2 = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: ProviderConfiguration\n"

	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}"
)

// newItem returns an item with a configuration in YAML.
func newItem(t *testing.T, config string) *lsv1alpha1.DeployItem {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(config))
	if err != nil {
		t.Fatalf("%s: %v", config, err)
	}
	return newItemFromRaw(raw)
}

func newItemFromRaw(raw []byte) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name = "ns", "item"
	di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
	return di
}

// equalOptions contains the options for comparing configurations. Raw JSON is compared by its meaning. Fields that only
// contain the parsed form of another field are ignored.
var equalOptions = cmp.Options{
	cmp.Comparer(func(a, b runtime.RawExtension) bool { return isEqualJSON(a.Raw, b.Raw) }),
	cmpopts.IgnoreUnexported(readiness.Check{}, resources.Export{}),
	cmpopts.EquateEmpty(),
}

// isEqualJSON reports whether two JSON texts have the same meaning. Numbers are equal only if they are written in the
// same way.
func isEqualJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := decodeExact(a)
	y, errY := decodeExact(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y) // cmp takes too long on deep lists
}

func decodeExact(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func readExample(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestDecodeReadsAllFields(t *testing.T) {
	want := func(version string) *Config {
		raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
		name := "other"
		config := &Config{
			Strategy: manifestv1alpha2.UpdateStrategyMerge,
			Manifests: []managedresource.Manifest{
				{Policy: managedresource.ManagePolicy, Manifest: raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"k":"v"}}`)},
				{Policy: managedresource.ManagePolicy, Manifest: raw(`{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"db","namespace":"ns"},"spec":{"big":9007199254740993}}`)},
			},
		}
		config.Config = resources.Config{
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
		config.Exports = []resources.Export{
			{Export: managedresource.Export{Key: "database.url", JSONPath: "status.url", FromResource: from}, Timeout: time.Minute},
			{Export: managedresource.Export{
				Key: "database.password", JSONPath: "spec.secretRef", FromResource: from, TargetName: &name,
				FromObjectReference: &managedresource.FromObjectReference{APIVersion: "v1", Kind: "Secret", JSONPath: "data.password"},
			}, Timeout: 5 * time.Minute},
		}
		config.Checks = []resources.Check{{Timeout: time.Minute}}
		if version == v2 {
			config.ContinuousReconcile = &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: time.Hour}}
			config.Manifests[1] = managedresource.Manifest{
				Policy: managedresource.KeepPolicy, Manifest: config.Manifests[1].Manifest,
				AnnotateBeforeCreate: map[string]string{"example.com/a": "b"}, AnnotateBeforeDelete: map[string]string{"example.com/c": "d"},
				PatchAfterDeployment: raw(`{"spec":{"x":1}}`), PatchBeforeDelete: raw(`{"spec":{"x":null}}`),
			}
		}
		return config
	}
	for name, tc := range map[string]struct{ file, version string }{
		"all fields of v1alpha1 are read [H-28][D9][D10][D13][D14]": {"v1alpha1.yaml", v1},
		"all fields of v1alpha2 are read [D8][D9][D10][D13][D14]": {
			"v1alpha2.yaml", v2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(newItem(t, readExample(t, tc.file)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			wanted := want(tc.version)
			if len(got.Checks) != 1 || got.Checks[0].Spec.Name != "database is up" || len(got.Checks[0].Spec.Requirements) != 1 || len(got.Checks[0].Spec.Resource) != 1 ||
				got.Checks[0].Spec.LabelSelector == nil || !got.Checks[0].Spec.Disabled || *got.Checks[0].Spec.TargetName != "other" {
				t.Errorf("Decode(...): check %+v", got.Checks)
			}
			wanted.Checks[0].Check = got.Checks[0].Check
			if diff := cmp.Diff(wanted, got, equalOptions); diff != "" {
				t.Errorf("Decode(...): -want, +got:\n%s", diff)
			}
			expectRoundTrip(t, got)
		})
	}
}

// expectRoundTrip encodes a configuration in version v1alpha2, decodes the result, and requires that both
// configurations are equal.
func expectRoundTrip(t *testing.T, config *Config) {
	t.Helper()
	out := providerConfiguration[managedresource.Manifest]{Spec: config.ToSpec(), UpdateStrategy: config.Strategy, Manifests: config.Manifests}
	out.SetGroupVersionKind(kindV1alpha2)
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatalf("encode the configuration: %v", err)
	}
	got, err := Decode(newItemFromRaw(raw), Options{})
	if err != nil {
		t.Fatalf("decode the encoded configuration: %v\n%s", err, raw)
	}
	if diff := cmp.Diff(config, got, equalOptions); diff != "" {
		t.Errorf("the configuration after encoding and decoding: -want, +got:\n%s", diff)
	}
}

func TestDecodeSetsDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		config string
		opts   Options
		want   Config
	}{
		"DefaultStrategy [D9]": {
			reason: "Not update, which defaulting by the API module would set.",
			config: v2, want: Config{Strategy: StrategyApply},
		},
		"StrategyOfTheOptions [D9]": {
			reason: "The operator chooses the default.",
			config: v1, opts: Options{Strategy: "update"}, want: Config{Strategy: "update"},
		},
		"StrategyOfTheItem [D9]": {
			reason: "The item precedes the options.",
			config: v2 + "updateStrategy: patch", opts: Options{Strategy: "update"}, want: Config{Strategy: "patch"},
		},
		"ApplyInTheItem [D9]": {
			reason: "The item may name the default.",
			config: v1 + "updateStrategy: apply", opts: Options{Strategy: "update"}, want: Config{Strategy: "apply"},
		},
		"Policy [D8]": {
			reason: "A manifest without policy is managed.",
			config: v2 + "manifests: [{manifest: " + configMap + "}]",
			want: Config{Strategy: StrategyApply, Manifests: []managedresource.Manifest{{
				Policy: managedresource.ManagePolicy, Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`)},
			}}},
		},
		"NoTimeouts [D10][D12]": {
			reason: "Neither none nor a missing value is a timeout.",
			config: v2 + "deleteTimeout: none\nreadinessChecks: {timeout: 0s}\nexports: {}",
			want:   Config{Strategy: StrategyApply},
		},
		"EmptySchedule": {
			reason: "An empty schedule has no effect.",
			config: v2 + "continuousReconcile: {}", want: Config{Strategy: StrategyApply},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(newItem(t, tc.config), tc.opts)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(&tc.want, got, equalOptions); diff != "" {
				t.Errorf("%s\nDecode(...): -want, +got:\n%s", tc.reason, diff)
			}
			expectRoundTrip(t, got)
		})
	}
}

func expectConfigError(t *testing.T, config, path string) {
	t.Helper()
	_, err := Decode(newItem(t, config), Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Decode(...): want an error with %q, got %v", path, err)
	}
	if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
		t.Errorf("Codes(err): -want, +got:\n%s", diff)
	}
}

func TestDecodeRejectsInvalidConfigurations(t *testing.T) {
	for name, tc := range map[string]struct{ config, path string }{
		"OtherKind [H-29]":       {"apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\nkind: ProviderConfiguration", "spec.config: is mock"},
		"Configuration [H-29]":   {"apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration", "spec.config: is manifest"},
		"UnknownField [H-29]":    {v2 + "updateStrategie: update", `unknown field "updateStrategie"`},
		"UnknownFieldOld [H-29]": {v1 + "updateStrategie: update", `unknown field "updateStrategie"`},
		"UnknownInside [H-29]":   {v2 + "manifests: [{polici: keep}]", `unknown field "manifests[0].polici"`},
		"OtherCase [H-29]":       {v2 + "UpdateStrategy: update", `unknown field "UpdateStrategy"`},
		"WrongType [H-29]":       {v2 + "manifests: 7", "manifests"},
		"WrongTypeInside [H-29]": {v2 + "readinessChecks: {disableDefault: 7}", "readinessChecks.disableDefault"},
		"NewFieldInOld [H-29]":   {v1 + "continuousReconcile: {every: 1h}", "spec.config.continuousReconcile: unknown field in v1alpha1"},
		"Kubeconfig [D16]":       {v2 + "kubeconfig: e30=", "spec.config.kubeconfig: not supported: put the kubeconfig into a Target"},
		"KubeconfigOld [D16]":    {v1 + "kubeconfig: e30=", "spec.config.kubeconfig: not supported"},
		"Strategy [D9][H-29]":    {v2 + "updateStrategy: replace", `spec.config.updateStrategy: is "replace"`},
		"StrategyOld [D9][H-29]": {v1 + "updateStrategy: Update", `spec.config.updateStrategy: is "Update"`},
		"Check [D13][H-29]":      {v2 + "readinessChecks: {custom: [{name: a}]}", "spec.config.readinessChecks.custom[0].resourceSelector: required"},
		"ScheduleEvery":          {v2 + "continuousReconcile: {every: often}", "spec.config.continuousReconcile.every"},
		"ExportKind [D14][H-29]": {v1 + "exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, name: a}}]}", "spec.config.exports.exports[0].fromResource.kind"},
	} {
		t.Run(name, func(t *testing.T) { expectConfigError(t, tc.config, tc.path) })
	}
	t.Run("a key that occurs twice is rejected [H-29]", func(t *testing.T) {
		_, err := Decode(newItemFromRaw([]byte(`{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha2","kind":"ProviderConfiguration","updateStrategy":"update","updateStrategy":"patch"}`)), Options{})
		if err == nil || !strings.Contains(err.Error(), `duplicate field "updateStrategy"`) {
			t.Errorf("Decode(...): got %v", err)
		}
	})
	t.Run("a missing configuration is rejected", func(t *testing.T) {
		if _, err := Decode(&lsv1alpha1.DeployItem{}, Options{}); err == nil || !strings.Contains(err.Error(), "spec.config: required") {
			t.Errorf("Decode(...): got %v", err)
		}
	})
	t.Run("an invalid default strategy is rejected", func(t *testing.T) {
		if _, err := Decode(newItem(t, v2), Options{Strategy: "x"}); err == nil {
			t.Error("Decode(...): an unknown default is refused too")
		}
	})
}
