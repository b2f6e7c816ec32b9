// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	"k8s.io/utils/ptr"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Spec contains the settings that Landscaper's manifest and Helm deployers have in common. Embed it in the type of a
// provider configuration, decode that type with [deployerlib.DecodeConfigAs], and call Spec.ToConfig. The timeouts are
// fields of older versions of Landscaper.
type Spec struct {
	ReadinessChecks            *ReadinessSpec                            `json:"readinessChecks,omitempty"`
	DeleteTimeout              *Duration                                 `json:"deleteTimeout,omitempty"`
	Exports                    *ExportsSpec                              `json:"exports,omitempty"`
	ContinuousReconcile        *ScheduleSpec                             `json:"continuousReconcile,omitempty"`
	DeletionGroups             []managedresource.DeletionGroupDefinition `json:"deletionGroups,omitempty"`
	DeletionGroupsDuringUpdate []managedresource.DeletionGroupDefinition `json:"deletionGroupsDuringUpdate,omitempty"`
}

// ReadinessSpec is the JSON form of the readiness checks.
type ReadinessSpec struct {
	DisableDefault bool        `json:"disableDefault,omitempty"`
	Timeout        *Duration   `json:"timeout,omitempty"`
	Custom         []CheckSpec `json:"custom,omitempty"`
}

// CheckSpec is the JSON form of a Check.
type CheckSpec struct {
	health.CustomReadinessCheckConfiguration `json:",inline"`

	Timeout *Duration `json:"timeout,omitempty"`
}

// ExportsSpec is the JSON form of the exports.
type ExportsSpec struct {
	DefaultTimeout *Duration    `json:"defaultTimeout,omitempty"`
	Exports        []ExportSpec `json:"exports,omitempty"`
}

// ExportSpec is the JSON form of an Export.
type ExportSpec struct {
	managedresource.Export `json:",inline"`

	Timeout *Duration `json:"timeout,omitempty"`
}

// ScheduleSpec is the JSON form of a schedule.
type ScheduleSpec struct {
	Cron  string    `json:"cron,omitempty"`
	Every *Duration `json:"every,omitempty"`
}

// Duration is a duration in a configuration. If the text is invalid, Duration stores the error, so that Spec.ToConfig
// can report the error together with the path of the field.
type Duration struct {
	value   time.Duration
	problem string
}

// UnmarshalJSON decodes text such as "5m" or "none". It stores a decoding error and always returns nil.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var parsed lsv1alpha1.Duration
	*d = Duration{}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		d.problem = "is " + string(bytes.TrimSpace(raw)) + `, want a duration such as "5m", or "none"`
		return nil
	}
	if parsed.Duration < 0 {
		d.problem = "is " + parsed.String() + ", must not be negative"
	}
	d.value = parsed.Duration
	return nil
}

// MarshalJSON returns the form that UnmarshalJSON decodes.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(lsv1alpha1.Duration{Duration: d.value})
}

// parseDuration returns the value of an optional duration. 0, "none" and a missing duration mean no limit.
func parseDuration(path string, d *Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.problem != "" {
		return 0, newConfigError(path, "%s", d.problem)
	}
	return d.value, nil
}

// newDuration converts a duration to the form that it has in the configuration. It is the inverse of the function
// `bound`.
func newDuration(d time.Duration) *Duration {
	if d == 0 {
		return nil
	}
	return &Duration{value: d}
}

// newConfigError returns an error of NewConfigError at a path of the configuration.
func newConfigError(path, format string, args ...any) error {
	return deployerlib.NewConfigError("spec.config."+path, format, args...)
}

// Options configure how a Spec is validated.
type Options struct {
	// ExportTimeout limits how long a run waits for the value of an export if the item itself sets no limit. If it is
	// zero, the run waits until the timeout of the item.
	ExportTimeout time.Duration
	// ExportValues allows exports without fromResource. Such an export takes its value from the values that the
	// deployer passes to Run.SetExports. If ExportValues is false, an export without fromResource is an error.
	ExportValues bool
}

// ToConfig validates the configuration and prepares its checks and paths. The error is one of
// deployerlib.NewConfigError with the path of the first invalid field below spec.config.
func (s *Spec) ToConfig(opts Options) (Config, error) {
	var c Config
	schedule, scheduleErr := s.ContinuousReconcile.toSchedule()
	deleteTimeout, timeoutErr := parseDuration("deleteTimeout", s.DeleteTimeout)
	err := cmp.Or(
		c.setReadiness(s.ReadinessChecks),
		c.setExports(s.Exports, opts),
		scheduleErr,
		checkGroups("deletionGroups", s.DeletionGroups),
		checkGroups("deletionGroupsDuringUpdate", s.DeletionGroupsDuringUpdate),
		timeoutErr,
	)
	if err != nil {
		return Config{}, err
	}
	c.ContinuousReconcile, c.DeleteTimeout = schedule, deleteTimeout
	c.DeletionGroups, c.DeletionGroupsDuringUpdate = s.DeletionGroups, s.DeletionGroupsDuringUpdate
	return c, nil
}

// setReadiness validates and prepares the readiness checks.
func (c *Config) setReadiness(in *ReadinessSpec) error {
	if in == nil {
		return nil
	}
	c.DisableDefaultReadiness = in.DisableDefault
	var err error
	if c.ReadinessTimeout, err = parseDuration("readinessChecks.timeout", in.Timeout); err != nil {
		return err
	}
	for i, item := range in.Custom {
		path := fmt.Sprintf("readinessChecks.custom[%d]", i)
		check := Check{}
		if check.Check, err = readiness.Compile(item.CustomReadinessCheckConfiguration); err != nil {
			if spec, ok := errors.AsType[*readiness.SpecError](err); ok {
				return newConfigError(path+"."+spec.Path, "%s", spec.Reason)
			}
			return newConfigError(path, "%s", err.Error())
		}
		if check.Timeout, err = parseDuration(path+".timeout", item.Timeout); err != nil {
			return err
		}
		c.Checks = append(c.Checks, check)
	}
	return nil
}

// ToSpec converts the configuration back to a Spec. Spec.ToConfig of the result returns the same configuration. The
// timeouts, which are fields of older versions of Landscaper, are set only if they are used.
func (c *Config) ToSpec() Spec {
	out := Spec{
		DeleteTimeout: newDuration(c.DeleteTimeout), ContinuousReconcile: newScheduleSpec(c.ContinuousReconcile),
		DeletionGroups: c.DeletionGroups, DeletionGroupsDuringUpdate: c.DeletionGroupsDuringUpdate,
	}
	if c.DisableDefaultReadiness || c.ReadinessTimeout != 0 || len(c.Checks) > 0 {
		out.ReadinessChecks = &ReadinessSpec{DisableDefault: c.DisableDefaultReadiness, Timeout: newDuration(c.ReadinessTimeout)}
		for _, check := range c.Checks {
			out.ReadinessChecks.Custom = append(out.ReadinessChecks.Custom,
				CheckSpec{CustomReadinessCheckConfiguration: check.Spec, Timeout: newDuration(check.Timeout)})
		}
	}
	if len(c.Exports) > 0 {
		out.Exports = &ExportsSpec{}
		for _, export := range c.Exports {
			out.Exports.Exports = append(out.Exports.Exports, ExportSpec{Export: export.Export, Timeout: newDuration(export.Timeout)})
		}
	}
	return out
}

// newScheduleSpec returns the JSON form of a schedule.
func newScheduleSpec(in *cr.ContinuousReconcileSpec) *ScheduleSpec {
	if in == nil {
		return nil
	}
	return &ScheduleSpec{Cron: in.Cron, Every: newDuration(ptr.Deref(in.Every, lsv1alpha1.Duration{}).Duration)}
}
