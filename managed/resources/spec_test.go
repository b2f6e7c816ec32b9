// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// chart is the configuration of a deployer of another type.
type chart struct {
	metav1.TypeMeta `json:",inline"`
	Spec            `json:",inline"`

	Name string `json:"name,omitempty"`
}

var (
	chartKind   = schema.GroupVersionKind{Group: "chart.example.com", Version: "v1", Kind: "ProviderConfiguration"}
	chartStatus = StatusFormat{
		Kind:   schema.GroupVersionKind{Group: "chart.example.com", Version: "v1", Kind: "ProviderStatus"},
		Former: []schema.GroupVersionKind{{Group: "chart.example.com", Version: "v1alpha1", Kind: "ProviderStatus"}},
	}
)

// newItem returns an item whose configuration contains the given fields of a Spec, in YAML.
func newItem(t *testing.T, fields string) *lsv1alpha1.DeployItem {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: chart.example.com/v1\nkind: ProviderConfiguration\n" + fields))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: raw}
	return di
}

// decode decodes the given fields of a Spec, which are written in YAML.
func decode(t *testing.T, fields string, opts Options) (Config, error) {
	t.Helper()
	in, err := deployerlib.DecodeConfigAs[chart](newItem(t, fields), chartKind)
	if err != nil {
		return Config{}, err
	}
	return in.ToConfig(opts)
}

// expectConfigError requires that the configuration is refused with an error that contains a path and a code.
func expectConfigError(t *testing.T, fields, path string) {
	t.Helper()
	_, err := decode(t, fields, Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Config(...): want an error with %q, got %v", path, err)
	}
	if diff := cmp.Diff([]lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem}, contract.ErrorCodes(err)); diff != "" {
		t.Errorf("Codes(err): -want, +got:\n%s", diff)
	}
}

// expectRoundTrip encodes a configuration, decodes the result, and requires that it is the same.
func expectRoundTrip(t *testing.T, config Config) {
	t.Helper()
	raw, err := yaml.Marshal(config.ToSpec())
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(t, string(raw), Options{})
	if err != nil {
		t.Fatalf("Config(Spec()): %v\n%s", err, raw)
	}
	if diff := cmp.Diff(config, got, cmpopts.IgnoreUnexported(readiness.Check{}, Export{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Config(Spec()): -want, +got:\n%s", diff)
	}
}

const (
	podCheck  = "name: a, resourceSelector: [{apiVersion: v1, kind: Pod, name: a}], requirements: [{jsonPath: a, operator: exists}]"
	podExport = "key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}"
)

func TestSpecIsEncoded(t *testing.T) {
	t.Run("a Spec decodes all fields in the configuration of any deployer [D17]", func(t *testing.T) {
		config, err := decode(t, `
readinessChecks: {disableDefault: true, timeout: 3m, custom: [{`+podCheck+`, timeout: 1m, targetName: other}]}
exports: {defaultTimeout: 5m, exports: [{`+podExport+`}, {`+podExport+`, timeout: 1m, targetName: other, fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: b}}]}
deleteTimeout: 2m
deletionGroups: [{predefinedResourceGroup: {type: crds}}]
deletionGroupsDuringUpdate: [{predefinedResourceGroup: {type: empty}}]
continuousReconcile: {every: 1h}`, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !config.DisableDefaultReadiness || config.ReadinessTimeout != 3*time.Minute || config.DeleteTimeout != 2*time.Minute ||
			len(config.Checks) != 1 || config.Checks[0].Timeout != time.Minute || len(config.Exports) != 2 || config.ContinuousReconcile == nil {
			t.Errorf("Config(...): got %+v", config)
		}
		expectRoundTrip(t, config)
	})
}

func TestExportTimeouts(t *testing.T) {
	for name, tc := range map[string]struct {
		exports string
		want    time.Duration
	}{
		"Own":      {"{defaultTimeout: 2m, exports: [{" + podExport + ", timeout: 1m}]}", time.Minute},
		"Default":  {"{defaultTimeout: 2m, exports: [{" + podExport + "}]}", 2 * time.Minute},
		"Deployer": {"{exports: [{" + podExport + "}]}", 3 * time.Minute},
	} {
		t.Run(name+" [D14]", func(t *testing.T) {
			got, err := decode(t, "exports: "+tc.exports, Options{ExportTimeout: 3 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if got.Exports[0].Timeout != tc.want {
				t.Errorf("Config(...): want %s, got %s", tc.want, got.Exports[0].Timeout)
			}
		})
	}
}

func TestSpecRejectsInvalidFields(t *testing.T) {
	for name, tc := range map[string]struct{ fields, path string }{
		"WrongType [H-29]":         {"readinessChecks: {disableDefault: 7}", "readinessChecks.disableDefault"},
		"UnknownDeep [H-29]":       {"readinessChecks: {custom: [{name: a, requirements: [{path: a}]}]}", `unknown field "readinessChecks.custom[0].requirements[0].path"`},
		"UnknownInExport [H-29]":   {"exports: {exports: [{keys: a}]}", `unknown field "exports.exports[0].keys"`},
		"DeleteTimeout [D10]":      {"deleteTimeout: 3", `spec.config.deleteTimeout: is 3, want a duration`},
		"DeleteTimeoutNeg [D10]":   {"deleteTimeout: -3m", `spec.config.deleteTimeout: is -3m0s`},
		"ReadinessTimeout [D12]":   {"readinessChecks: {timeout: soon}", `spec.config.readinessChecks.timeout: is "soon"`},
		"Check [D13][H-29]":        {"readinessChecks: {custom: [{name: a}]}", "spec.config.readinessChecks.custom[0].resourceSelector: required"},
		"CheckOperator [D13]":      {"readinessChecks: {custom: [{name: a, resourceSelector: [{apiVersion: v1, kind: Pod, name: a}], requirements: [{jsonPath: a, operator: gt}]}]}", "spec.config.readinessChecks.custom[0].requirements[0].operator"},
		"CheckTimeout [D13]":       {"readinessChecks: {custom: [{" + podCheck + ", timeout: x}]}", "spec.config.readinessChecks.custom[0].timeout"},
		"ScheduleTwice":            {"continuousReconcile: {every: 1h, cron: '@daily'}", "spec.config.continuousReconcile"},
		"ScheduleEvery":            {"continuousReconcile: {every: often}", "spec.config.continuousReconcile.every"},
		"ExportNoKey [D14][H-29]":  {"exports: {exports: [{jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].key"},
		"ExportKey [D14][H-29]":    {"exports: {exports: [{key: 'a[0]', jsonPath: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].key"},
		"ExportPath [D14][H-29]":   {"exports: {exports: [{key: a, fromResource: {apiVersion: v1, kind: Pod, name: a}}]}", "spec.config.exports.exports[0].jsonPath"},
		"ExportSource [D14][H-33]": {"exports: {exports: [{key: a, jsonPath: a}]}", "spec.config.exports.exports[0].fromResource: required"},
		"ExportKind [D14][H-29]":   {"exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, name: a}}]}", "spec.config.exports.exports[0].fromResource.kind"},
		"ExportName [D14][H-29]":   {"exports: {exports: [{key: a, jsonPath: a, fromResource: {apiVersion: v1, kind: Pod}}]}", "spec.config.exports.exports[0].fromResource.name"},
		"ExportTarget [D14][H-29]": {"exports: {exports: [{" + podExport + ", targetName: ''}]}", "spec.config.exports.exports[0].targetName"},
		"ExportRef [D14][H-29]":    {"exports: {exports: [{" + podExport + ", fromObjectRef: {kind: Secret, jsonPath: b}}]}", "spec.config.exports.exports[0].fromObjectRef.apiVersion"},
		"ExportRefPath [D14]":      {"exports: {exports: [{" + podExport + ", fromObjectRef: {apiVersion: v1, kind: Secret}}]}", "spec.config.exports.exports[0].fromObjectRef.jsonPath"},
		"ExportTimeout [D14]":      {"exports: {exports: [{key: a, timeout: x, jsonPath: a}]}", "spec.config.exports.exports[0].timeout"},
		"ExportsTimeout [D14]":     {"exports: {defaultTimeout: x}", "spec.config.exports.defaultTimeout"},
	} {
		t.Run(name, func(t *testing.T) { expectConfigError(t, tc.fields, tc.path) })
	}
}

func TestGetSchedule(t *testing.T) {
	for name, tc := range map[string]struct {
		fields string
		kind   schema.GroupVersionKind
		found  bool
	}{
		"Every":    {"continuousReconcile: {every: 1h}", chartKind, true},
		"Cron":     {"continuousReconcile: {cron: '@daily'}", chartKind, true},
		"None":     {"", chartKind, false},
		"Empty":    {"continuousReconcile: {}", chartKind, false},
		"Other":    {"continuousReconcile: {every: 1h}", chartStatus.Kind, false},
		"BadEvery": {"continuousReconcile: {every: often}", chartKind, false},
		"BadCron":  {"continuousReconcile: {cron: at noon}", chartKind, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := GetSchedule(newItem(t, tc.fields), tc.kind)
			if (got != nil) != tc.found {
				t.Errorf("Schedule(...): got %v", got)
			}
			if config, err := decode(t, tc.fields, Options{}); err == nil && tc.kind == chartKind && !cmp.Equal(config.ContinuousReconcile, got) {
				t.Errorf("Schedule(...): want %v as in the configuration, got %v", config.ContinuousReconcile, got)
			}
		})
	}
}
