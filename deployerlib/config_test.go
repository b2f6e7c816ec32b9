// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

type config struct {
	Replicas int               `json:"replicas,omitempty"`
	Names    []string          `json:"names,omitempty"`
	Inner    map[string]config `json:"inner,omitempty"`
}

type typedConfig struct {
	metav1.TypeMeta `json:",inline"`

	Replicas int `json:"replicas,omitempty"`
}

var testKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Config"}

func newConfiguredItem(body string) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{Spec: lsv1alpha1.DeployItemSpec{Configuration: &runtime.RawExtension{Raw: []byte(body)}}}
}

func TestDecodeConfig(t *testing.T) {
	const head = `"apiVersion":"example.com/v1","kind":"Config"`
	tests := map[string]struct {
		body string
		want *config
		err  string
	}{
		"valid configuration":                       {`{` + head + `,"replicas":2,"names":["a"]}`, &config{Replicas: 2, Names: []string{"a"}}, ""},
		"configuration without apiVersion and kind": {`{"replicas":2}`, nil, `lacks apiVersion or kind, want example.com/v1 "Config"`},
		"another kind":                              {`{"apiVersion":"example.com/v1","kind":"Other"}`, nil, "Other"},
		"another version":                           {`{"apiVersion":"example.com/v2","kind":"Config"}`, nil, "example.com/v2"},
		"unknown field":                             {`{` + head + `,"replicaz":2}`, nil, "replicaz"},
		"unknown field deep down":                   {`{` + head + `,"inner":{"a":{"b":1}}}`, nil, "inner.a.b"},
		"field in another case":                     {`{` + head + `,"Replicas":2}`, nil, "Replicas"},
		"field that occurs twice":                   {`{` + head + `,"replicas":2,"replicas":3}`, nil, "replicas"},
		"wrong type":                                {`{` + head + `,"replicas":"two"}`, nil, "replicas"},

		"wrong type without Go types [F32]":                 {`{` + head + `,"replicas":"two"}`, nil, "spec.config.replicas: is a string, must be a whole number that fits int"},
		"wrong type deep down without Go types [F32]":       {`{` + head + `,"inner":{"a":{"names":{}}}}`, nil, "names: is an object, must be an array"},
		"list instead of an object, without Go types [F32]": {`{` + head + `,"inner":[]}`, nil, "spec.config.inner: is an array, must be an object"},
		"list instead of an object":                         {`[]`, nil, "spec.config"},
		"invalid JSON":                                      {`{`, nil, "spec.config"},
		"empty":                                             {``, nil, "required"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := deployerlib.DecodeConfigAs[config](newConfiguredItem(test.body), testKind)
			checkConfigError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" && test.err == "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("DecodeConfig accepts each kind if no kind is required", func(t *testing.T) {
		got, err := deployerlib.DecodeConfig[config](newConfiguredItem(`{"apiVersion":"x/v1","kind":"Y","replicas":1}`))
		if err != nil || got.Replicas != 1 {
			t.Errorf("DecodeConfig(...) = %+v, %v, want 1 replica", got, err)
		}
	})
	t.Run("DecodeConfig sets the TypeMeta of the type", func(t *testing.T) {
		got, err := deployerlib.DecodeConfigAs[typedConfig](newConfiguredItem(`{`+head+`,"replicas":1}`), testKind)
		if err != nil || got.Kind != "Config" || got.APIVersion != "example.com/v1" || got.Replicas != 1 {
			t.Errorf("DecodeConfigAs(...) = %+v, %v, want the TypeMeta and 1 replica", got, err)
		}
		_, err = deployerlib.DecodeConfig[typedConfig](newConfiguredItem(`{` + head + `,"odd":1}`))
		checkConfigError(t, err, "odd")
	})
	t.Run("DecodeConfig reports a missing configuration", func(t *testing.T) {
		_, err := deployerlib.DecodeConfig[config](&lsv1alpha1.DeployItem{})
		checkConfigError(t, err, "spec.config")
	})
}

// checkConfigError checks that the text of err contains the parameter `want`, and that err has the code
// ERR_CONFIGURATION_PROBLEM. If want is empty, err must be nil.
func checkConfigError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("unexpected error %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	if !slices.Contains(contract.ErrorCodes(err), lsv1alpha1.ErrorConfigurationProblem) {
		t.Errorf("error %v has no code ERR_CONFIGURATION_PROBLEM", err)
	}
}

func TestConfigError(t *testing.T) {
	err := deployerlib.NewConfigError("spec.config.a", "is %d\nlines %s", 2, strings.Repeat("x", 5000))
	checkConfigError(t, err, "spec.config.a: is 2; lines")
	if len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestSetProviderStatus(t *testing.T) {
	di := &lsv1alpha1.DeployItem{}
	if err := deployerlib.SetProviderStatus(di, config{Replicas: 2}, testKind); err != nil {
		t.Fatal(err)
	}
	if got := string(di.Status.ProviderStatus.Raw); got != `{"apiVersion":"example.com/v1","kind":"Config","replicas":2}` {
		t.Errorf("stored %s", got)
	}
	before := di.Status.ProviderStatus
	for name, obj := range map[string]any{
		"list instead of an object": []int{1}, "no JSON": math.Inf(1), "a nil map's null": map[string]int(nil),
		"nil members": map[string]json.RawMessage(nil), "members that are no JSON": map[string]json.RawMessage{"a": json.RawMessage("{")}, "too large": map[string]string{"a": strings.Repeat("x", 1<<20)},
	} {
		if err := deployerlib.SetProviderStatus(di, obj, testKind); err == nil {
			t.Errorf("%s: no error", name)
		}
		if di.Status.ProviderStatus != before {
			t.Errorf("%s: the stored status changed", name)
		}
	}
	if err := deployerlib.SetProviderStatus(di, map[string]string{"kind": "Mine", "apiVersion": "x/v1"}, testKind); err != nil || !strings.Contains(string(di.Status.ProviderStatus.Raw), `"kind":"Config"`) {
		t.Errorf("%v, %s", err, di.Status.ProviderStatus.Raw)
	}
	members := map[string]json.RawMessage{"replicas": json.RawMessage(" 2")}
	if err := deployerlib.SetProviderStatus(di, members, testKind); err != nil || string(di.Status.ProviderStatus.Raw) != `{"apiVersion":"example.com/v1","kind":"Config","replicas":2}` {
		t.Errorf("%v, %s", err, di.Status.ProviderStatus.Raw)
	}
	if len(members) != 1 {
		t.Errorf("the map of the caller changed: %v", members)
	}
	if err := deployerlib.SetProviderStatus(di, nil, testKind); err != nil || di.Status.ProviderStatus != nil {
		t.Errorf("a nil error does not clear lastError: %v", err)
	}
}

func FuzzDecodeConfig(f *testing.F) {
	for _, seed := range []string{`{}`, `{"apiVersion":"example.com/v1","kind":"Config","replicas":1}`, `null`, `{"inner":{"a":{"inner":null}}}`, `{"a":1,"a":2}`, "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, decode := range []func() error{
			func() error { _, err := deployerlib.DecodeConfig[config](newConfiguredItem(body)); return err },
			func() error {
				_, err := deployerlib.DecodeConfigAs[typedConfig](newConfiguredItem(body), testKind)
				return err
			},
		} {
			if err := decode(); err != nil && !slices.Contains(contract.ErrorCodes(err), lsv1alpha1.ErrorConfigurationProblem) {
				t.Errorf("error without code: %v", err)
			}
		}
	})
}
