// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
	"time"
)

func TestDecodeConfiguration(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		got, err := DecodeConfiguration([]byte(`
apiVersion: manifest.deployer.landscaper.gardener.cloud/` + version + `
kind: Configuration
identity: one
targetSelector:
- targets: [{name: a}]
  annotations: [{key: environment, operator: "=", values: [dev]}]
export: {defaultTimeout: 5m}
hpa: {maxReplicas: 3}
controller: {workers: 30, cacheSyncTimeout: 2m}
`))
		if err != nil {
			t.Fatal(err)
		}
		if got.Identity != "one" || len(got.TargetSelector) != 1 || got.Export.DefaultTimeout.Duration != 5*time.Minute ||
			got.HPAConfiguration.MaxReplicas != 3 || got.Controller.Workers != 30 || got.Controller.CacheSyncTimeout.Duration != 2*time.Minute {
			t.Errorf("DecodeConfiguration(...): got %+v", got)
		}
	}
	got, err := DecodeConfiguration([]byte(configuration))
	if err != nil || got.Controller.Workers != 0 || got.Export.DefaultTimeout != nil {
		t.Errorf("DecodeConfiguration(...): nothing is defaulted, got %+v, %v", got, err)
	}
}

const configuration = "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: Configuration\n"

func TestDecodeConfigurationRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"Empty":        {"", "configuration is"},
		"NoYAML":       {"a: b: c", "decode configuration"},
		"OtherKind":    {v2, "ProviderConfiguration"},
		"OtherGroup":   {"apiVersion: v1\nkind: Configuration\n", "configuration is v1"},
		"Unknown":      {configuration + "workers: 3", `unknown field "workers"`},
		"UnknownDeep":  {configuration + "controller: {worker: 3}", `unknown field "worker"`},
		"UnknownInOur": {configuration + "export: {timeout: 3m}", `unknown field "timeout"`},
		"Twice":        {configuration + "identity: a\nidentity: b", "identity"},
		"Workers":      {configuration + "controller: {workers: -1}", "controller.workers: is -1"},
		"CacheSync":    {configuration + "controller: {cacheSyncTimeout: 0s}", "controller.cacheSyncTimeout: is 0s"},
		"HPA":          {configuration + "hpa: {maxReplicas: -1}", "hpa.maxReplicas: is -1"},
		"Timeout":      {configuration + "export: {defaultTimeout: soon}", `export.defaultTimeout: is "soon"`},
		"Selector":     {configuration + "targetSelector: [{labels: [{key: a, operator: similar}]}]", "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeConfiguration([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("DecodeConfiguration(...): want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
