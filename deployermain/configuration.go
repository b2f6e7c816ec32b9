// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"fmt"
	"os"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// Configuration contains the fields that are common to the configuration files of all deployers, in the format that
// Landscaper's charts write for Landscaper's own deployers. A deployer with further fields embeds it:
//
//	type configuration struct {
//		deployermain.Configuration `json:",inline"`
//
//		CloudURL string `json:"cloudURL"`
//	}
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Identity is the value of status.deployer.identity.
	Identity string `json:"identity,omitempty"`
	// TargetSelector restricts the deployer to items with a matching target or without a target.
	TargetSelector []lsv1alpha1.TargetSelector `json:"targetSelector,omitempty"`
	// Controller configures the controller.
	Controller ControllerConfiguration `json:"controller"`

	// Landscaper's charts write the following fields, but these fields have no effect in this package. Namespace and
	// UseOCMLib have no effect in Landscaper's own deployers either. If HPA permits several replicas, each replica of
	// Landscaper's own deployers locks an item before it processes the item. In this package, leader election makes
	// such locks unnecessary.
	Namespace any               `json:"namespace,omitempty"`
	HPA       *hpaConfiguration `json:"hpa,omitempty"`
	UseOCMLib any               `json:"useOCMLib,omitempty"`
}

// ControllerConfiguration configures the controller of a deployer.
type ControllerConfiguration struct {
	// Workers is the number of items that are reconciled at the same time.
	Workers int `json:"workers,omitempty"`
	// CacheSyncTimeout limits how long the controller waits for its caches to be filled when it starts.
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
}

// hpaConfiguration contains the settings that Landscaper's charts write for a HorizontalPodAutoscaler.
type hpaConfiguration struct {
	MaxReplicas              any `json:"maxReplicas,omitempty"`
	AverageCPUUtilization    any `json:"averageCpuUtilization,omitempty"`
	AverageMemoryUtilization any `json:"averageMemoryUtilization,omitempty"`
}

// Config is implemented by a pointer to [Configuration] and by a pointer to every struct that embeds it.
type Config interface {
	getConfiguration() *Configuration
}

func (c *Configuration) getConfiguration() *Configuration { return c }

// listIgnoredFields returns the names of the fields that are set but have no effect.
func (c *Configuration) listIgnoredFields() []string {
	fields := map[string]any{"namespace": c.Namespace, "useOCMLib": c.UseOCMLib}
	if c.HPA != nil {
		fields["hpa.maxReplicas"] = c.HPA.MaxReplicas
		fields["hpa.averageCpuUtilization"] = c.HPA.AverageCPUUtilization
		fields["hpa.averageMemoryUtilization"] = c.HPA.AverageMemoryUtilization
	}
	var names []string
	for name, value := range fields {
		if value != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// applyTo copies the values of the configuration file to the arguments of the deployer.
func (c *Configuration) applyTo(args *deployerlib.DeployerArgs) {
	if c.Identity != "" {
		args.Identity = c.Identity
	}
	if len(c.TargetSelector) > 0 {
		args.TargetSelectors = c.TargetSelector
	}
	if c.Controller.Workers > 0 {
		args.Options.MaxConcurrentReconciles = c.Controller.Workers
	}
	if c.Controller.CacheSyncTimeout != nil {
		args.Options.CacheSyncTimeout = c.Controller.CacheSyncTimeout.Duration
	}
}

// validate returns an error for the first invalid value.
func (c *Configuration) validate() error {
	if err := targets.ValidateSelectors(c.TargetSelector); err != nil {
		return err
	}
	if c.Controller.Workers < 0 {
		return fmt.Errorf("controller.workers: is %d, must not be negative", c.Controller.Workers)
	}
	if timeout := c.Controller.CacheSyncTimeout; timeout != nil && timeout.Duration <= 0 {
		return fmt.Errorf("controller.cacheSyncTimeout: is %s, must be positive", timeout.Duration)
	}
	return nil
}

// readConfiguration decodes a YAML or JSON file into config. It does nothing if path is empty. Decoding is strict:
// unknown and duplicate fields are errors.
func readConfiguration(path string, config Config, kinds []schema.GroupVersionKind) error {
	if path == "" {
		return nil
	}
	body, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(body, &meta); err != nil {
		return fmt.Errorf("decode configuration %s: %w", path, err)
	}
	if err := checkKind(meta, kinds); err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	if err := yaml.UnmarshalStrict(body, config); err != nil {
		return fmt.Errorf("decode configuration %s: %w", path, err)
	}
	if err := config.getConfiguration().validate(); err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	return nil
}

func checkKind(meta metav1.TypeMeta, kinds []schema.GroupVersionKind) error {
	if len(kinds) == 0 && (meta.Kind != "Configuration" || meta.APIVersion == "") {
		return fmt.Errorf("must have an apiVersion and the kind \"Configuration\", has apiVersion %q and kind %q", meta.APIVersion, meta.Kind)
	}
	if len(kinds) > 0 && !slices.Contains(kinds, meta.GroupVersionKind()) {
		return fmt.Errorf("is %s %q, want %s %q", meta.APIVersion, meta.Kind, kinds[0].GroupVersion(), kinds[0].Kind)
	}
	return nil
}
