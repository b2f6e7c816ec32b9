// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha1 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/targets"
)

// configurationKinds are the versions of the deployer's configuration file,
// which have the same fields.
var configurationKinds = []schema.GroupVersionKind{
	manifestv1alpha2.SchemeGroupVersion.WithKind("Configuration"),
	manifestv1alpha1.SchemeGroupVersion.WithKind("Configuration"),
}

// DecodeConfiguration reads the configuration file of the deployer (not of an
// item), as YAML or JSON. Decoding is strict, nothing is defaulted: workers and
// cacheSyncTimeout are 0 and nil when the file says nothing. hpa is accepted and
// has no effect: replicas elect a leader.
// Errors: what is wrong with the file, with the path of the field.
func DecodeConfiguration(body []byte) (*manifestv1alpha2.Configuration, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(body, &meta); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	kind := meta.GroupVersionKind()
	if kind != configurationKinds[0] && kind != configurationKinds[1] {
		return nil, fmt.Errorf("configuration is %s %q, want %s %q", meta.APIVersion, meta.Kind, configurationKinds[0].GroupVersion(), configurationKinds[0].Kind)
	}
	var file struct {
		manifestv1alpha2.Configuration `json:",inline"`

		Export struct {
			DefaultTimeout *duration `json:"defaultTimeout,omitempty"`
		} `json:"export"`
	}
	if err := yaml.UnmarshalStrict(body, &file); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	config := file.Configuration
	config.SetGroupVersionKind(configurationKinds[0])
	if timeout := file.Export.DefaultTimeout; timeout != nil {
		if timeout.fault != "" {
			return nil, fmt.Errorf("configuration: export.defaultTimeout: %s", timeout.fault)
		}
		config.Export.DefaultTimeout = &lsv1alpha1.Duration{Duration: timeout.value}
	}
	return &config, checkConfiguration(&config)
}

func checkConfiguration(config *manifestv1alpha2.Configuration) error {
	if err := targets.Validate(config.TargetSelector); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if workers := config.Controller.Workers; workers < 0 {
		return fmt.Errorf("configuration: controller.workers: is %d, must not be negative", workers)
	}
	if timeout := config.Controller.CacheSyncTimeout; timeout != nil && timeout.Duration <= 0 {
		return fmt.Errorf("configuration: controller.cacheSyncTimeout: is %s, must be positive", timeout.Duration)
	}
	if hpa := config.HPAConfiguration; hpa != nil && hpa.MaxReplicas < 0 {
		return fmt.Errorf("configuration: hpa.maxReplicas: is %d, must not be negative", hpa.MaxReplicas)
	}
	return nil
}
