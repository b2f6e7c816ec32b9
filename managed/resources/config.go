// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"time"

	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// Config is the validated form of a Spec. Each of its durations limits the time of one step. The durations never extend
// the time that is left for the item's Landscaper job. A duration of 0 means no limit.
type Config struct {
	// DisableDefaultReadiness disables the default readiness check for the objects of the item.
	DisableDefaultReadiness bool
	// ReadinessTimeout limits the time for all readiness checks together.
	ReadinessTimeout time.Duration
	// Checks are the custom checks, in the order of the item's configuration. They include the disabled checks.
	Checks []Check

	// Exports are the exports, in the order of the item's configuration.
	Exports []Export

	// DeleteTimeout limits how long a run waits until deleted objects are gone.
	DeleteTimeout time.Duration
	// DeletionGroups determines the order in which the objects are deleted when the item is deleted. If it is nil, the
	// built-in order is used.
	DeletionGroups []managedresource.DeletionGroupDefinition
	// DeletionGroupsDuringUpdate determines the order in which an update of the item deletes objects that the item no
	// longer contains. If it is nil, the built-in order is used.
	DeletionGroupsDuringUpdate []managedresource.DeletionGroupDefinition

	// ContinuousReconcile is the schedule of the item, or nil if there is none.
	ContinuousReconcile *cr.ContinuousReconcileSpec
}

// Check is a custom readiness check with its own timeout.
type Check struct {
	*readiness.Check

	// Timeout limits the time for this check. If it is zero, only Config.ReadinessTimeout applies.
	Timeout time.Duration
}

// Export describes a value that the item exports, with its paths already parsed.
type Export struct {
	managedresource.Export

	// Timeout limits how long a run waits for this value. If the export has no timeout, Timeout is the default of the
	// item or, if the item has no default either, the default of the deployer.
	Timeout time.Duration

	configPath string // the path of the export in the configuration
	key        []string
	path       *jsonpath.Path
	pathInto   *jsonpath.Path // path of fromObjectRef
}
