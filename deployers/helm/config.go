// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// Config is the validated configuration of an item.
type Config struct {
	resources.Config

	// Chart names the chart. Exactly one of its sources is set.
	Chart helmv1alpha1.Chart
	// Name and Namespace identify the release. Objects without a namespace are created in Namespace.
	Name, Namespace string
	// CreateNamespace creates Namespace if it does not exist.
	CreateNamespace bool
	// Values are the values for the templates, as release.DecodeValues returns them. They are not nil.
	Values map[string]any
	// HelmDeployment selects Helm mode, in which a Helm release is created. Otherwise the item is in manifest mode, in
	// which the chart is only rendered.
	HelmDeployment bool
	// Strategy selects how objects are written in manifest mode. It is never empty.
	Strategy apply.Strategy
	// Install and Upgrade are the settings for the operations of the same names. The zero value is the default.
	Install, Upgrade OperationConfig
	// Uninstall contains the settings for the deletion of a release.
	Uninstall UninstallConfig
	// Extension contains the settings that Landscaper's own Helm deployer does not have.
	Extension Extension
}

// OperationConfig contains the settings for the installation or the upgrade of a release.
type OperationConfig struct {
	// Atomic reverts a failed operation: a failed installation is uninstalled, and a failed upgrade is rolled back. It
	// implies Wait.
	Atomic bool
	// Force deletes and creates an object if the API server rejects a change of it.
	Force bool
	// SkipSchemaValidation disables the validation of values against the schemas of the chart.
	SkipSchemaValidation bool
	// TakeOwnership adopts objects that belong to no release or to another release.
	TakeOwnership bool
	// Wait makes the operation wait until all objects are ready, before the release is marked as deployed.
	Wait bool
	// Timeout limits the time of the operation. Zero stands for the time that is left for the job.
	Timeout time.Duration
}

// UninstallConfig contains the settings for the deletion of a release.
type UninstallConfig struct {
	// Timeout limits the time of the deletion. Zero means no limit.
	Timeout time.Duration
}

// Extension is the JSON form of the field deployerkit of the configuration. Landscaper's own Helm deployer ignores this
// field.
type Extension struct {
	// CRDs determines what happens to the CustomResourceDefinitions in the directory crds of the chart.
	CRDs CRDsConfig `json:"crds,omitzero"`
	// Hooks determines what happens to hooks in manifest mode. The value "apply" makes them ordinary objects, as in
	// Landscaper's own Helm deployer. Empty means that they are left out.
	Hooks string `json:"hooks,omitempty"`
	// DisableHooks disables all hooks in Helm mode.
	DisableHooks bool `json:"disableHooks,omitempty"`
	// Drift determines what happens when another client changes objects of the item.
	Drift DriftConfig `json:"drift,omitzero"`
	// Test runs the tests of the chart, in Helm mode.
	Test TestConfig `json:"test,omitzero"`
	// Slim removes all files of the chart except its templates from the release record.
	Slim bool `json:"slim,omitempty"`
	// Verify names a Secret in the namespace of the item. It contains the OpenPGP keys that may sign the chart. The
	// default of its field key is chart.DefaultKeyringKey. A chart without a valid signature is not deployed.
	Verify *lsv1alpha1.LocalSecretReference `json:"verify,omitempty"`
}

// HooksApply is the value of Extension.Hooks that makes hooks ordinary objects.
const HooksApply = "apply"

// CRDsConfig contains the policies for CustomResourceDefinitions.
type CRDsConfig struct {
	// Install is the policy for the first deployment. The default is CRDsCreate.
	Install CRDPolicy `json:"install,omitempty"`
	// Upgrade is the policy for later deployments. The default is CRDsSkip.
	Upgrade CRDPolicy `json:"upgrade,omitempty"`
	// Delete deletes the definitions together with the item, in manifest mode. It requires that both policies are
	// CRDsCreateReplace or empty.
	Delete bool `json:"delete,omitempty"`
}

// CRDPolicy determines what an operation does with a CustomResourceDefinition of the chart.
type CRDPolicy string

// The policies for CustomResourceDefinitions.
const (
	// CRDsSkip ignores the definition.
	CRDsSkip CRDPolicy = "Skip"
	// CRDsCreate creates the definition if it does not exist.
	CRDsCreate CRDPolicy = "Create"
	// CRDsCreateReplace creates or replaces the definition. It does not remove a version in which objects are stored.
	CRDsCreateReplace CRDPolicy = "CreateReplace"
)
