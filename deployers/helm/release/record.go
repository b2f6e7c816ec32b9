// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Status is the status of a revision.
type Status string

// The statuses of revisions.
const (
	StatusDeployed        = Status(releasecommon.StatusDeployed)
	StatusSuperseded      = Status(releasecommon.StatusSuperseded)
	StatusFailed          = Status(releasecommon.StatusFailed)
	StatusUninstalling    = Status(releasecommon.StatusUninstalling)
	StatusPendingInstall  = Status(releasecommon.StatusPendingInstall)
	StatusPendingUpgrade  = Status(releasecommon.StatusPendingUpgrade)
	StatusPendingRollback = Status(releasecommon.StatusPendingRollback)
)

// IsPending reports whether an operation is under way, or has ended without a result.
func (s Status) IsPending() bool {
	return s == StatusPendingInstall || s == StatusPendingUpgrade || s == StatusPendingRollback || s == StatusUninstalling
}

// Record describes one revision of a release. Helm reads and writes the same records.
type Record struct {
	release *releasev1.Release

	// The metadata of the Secret that stores the record.
	uid             types.UID
	resourceVersion string
}

// NewRecord returns a record with the result of a rendering. The caller sets its revision and its status with Begin.
func NewRecord(in Input, rendered *Rendered, slim bool) *Record {
	c := rendered.chart
	if slim {
		c = withoutFiles(c)
	}
	rel := &releasev1.Release{
		Name: in.Name, Namespace: in.Namespace, Chart: c, Config: rendered.values, Manifest: rendered.text,
		Info:        &releasev1.Info{Notes: rendered.Notes},
		ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
	}
	for _, hook := range rendered.Hooks {
		rel.Hooks = append(rel.Hooks, hook.hook)
	}
	return &Record{release: rel}
}

// withoutFiles returns a copy of a chart that contains only what a rollback or `helm get` needs.
func withoutFiles(c *chartv2.Chart) *chartv2.Chart {
	out := *c
	out.Files, out.Raw, out.Schema = nil, nil, nil
	return &out
}

// Rollback returns a record that restores the revision of r. The caller sets its revision and its status with Begin.
func (r *Record) Rollback() *Record {
	old := r.release
	return &Record{release: &releasev1.Release{
		Name: old.Name, Namespace: old.Namespace, Chart: old.Chart, Config: old.Config, Manifest: old.Manifest,
		Hooks:       old.Hooks,
		Info:        &releasev1.Info{Notes: old.Info.Notes, FirstDeployed: old.Info.FirstDeployed, RollbackRevision: old.Version},
		ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
	}}
}

// LabelOperation is the label of records that this deployer wrote. Its value identifies the operation and the revision.
const LabelOperation = "helm.deployerkit.dev/operation"

// Begin sets the revision, the status and the identity of the operation.
func (r *Record) Begin(revision int, status Status, operation string, now time.Time, description string) {
	r.release.Version = revision
	r.release.Info.LastDeployed = now
	if r.release.Info.FirstDeployed.IsZero() {
		r.release.Info.FirstDeployed = now
	}
	r.release.Labels = map[string]string{LabelOperation: OperationLabel(operation, revision)}
	r.SetStatus(status, description)
}

// SetFirstDeployed copies the time of the first deployment from an earlier revision.
func (r *Record) SetFirstDeployed(earlier *Record) {
	r.release.Info.FirstDeployed = earlier.release.Info.FirstDeployed
}

// OperationLabel returns the value of LabelOperation. It contains the revision, because Helm copies labels to the next
// revision.
func OperationLabel(operation string, revision int) string {
	return fmt.Sprintf("%s.v%d", operation, revision)
}

// SetStatus sets the status and the description, in memory.
func (r *Record) SetStatus(status Status, description string) {
	if status == StatusUninstalling {
		r.release.Info.Deleted = r.release.Info.LastDeployed
	}
	r.release.SetStatus(releasecommon.Status(status), description)
}

// Name returns the name of the release.
func (r *Record) Name() string { return r.release.Name }

// Namespace returns the namespace of the release.
func (r *Record) Namespace() string { return r.release.Namespace }

// Revision returns the number of the revision.
func (r *Record) Revision() int { return r.release.Version }

// Operation returns the value of LabelOperation, or "" if another client wrote the record.
func (r *Record) Operation() string { return r.release.Labels[LabelOperation] }

// UID returns the UID of the Secret that stores the record.
func (r *Record) UID() types.UID { return r.uid }

// Status returns the status.
func (r *Record) Status() Status { return Status(r.release.Info.Status) }

// Description returns the description of the status.
func (r *Record) Description() string { return r.release.Info.Description }

// ChartName returns the name of the chart.
func (r *Record) ChartName() string { return r.release.Chart.Name() }

// ChartVersion returns the version of the chart.
func (r *Record) ChartVersion() string { return r.release.Chart.Metadata.Version }

// Objects returns the objects of the revision, without hooks.
func (r *Record) Objects() ([]Manifest, error) {
	var out []Manifest
	for _, text := range sortedDocuments(r.release.Manifest) {
		object, err := parseObject(text)
		if err != nil {
			return nil, newError(ReasonManifest, "revision %d of release %s: %v", r.release.Version, r.release.Name, err)
		}
		if object != nil {
			out = append(out, flatten(sourceOf(text), object)...)
		}
	}
	return out, nil
}

// sourceOf returns the path of the template that produced a document, from its first comment.
func sourceOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "# Source:"))
}

// Document returns .Values, .Chart and .Release of the rendering, for exports. The capabilities are not stored.
func (r *Record) Document() (map[string]any, error) {
	options := common.ReleaseOptions{
		Name: r.release.Name, Namespace: r.release.Namespace, Revision: r.release.Version, IsUpgrade: r.release.Version > 1, IsInstall: r.release.Version == 1,
	}
	top, err := util.ToRenderValuesWithSchemaValidation(r.release.Chart, deepCopy(r.release.Config), options, common.DefaultCapabilities, true)
	if err != nil {
		return nil, newError(ReasonValues, "the values of revision %d cannot be merged", r.release.Version)
	}
	return toDocument(top)
}

// Matches reports whether the record contains a chart with the same name, version and templates, and the same values.
func (r *Record) Matches(c *Chart, values map[string]any) bool {
	stored := r.release.Chart
	if stored == nil || stored.Metadata == nil || stored.Name() != c.Name() || stored.Metadata.Version != c.Version() {
		return false
	}
	templates := func(files []*common.File) map[string]string {
		out := map[string]string{}
		for _, file := range files {
			out[file.Name] = string(file.Data)
		}
		return out
	}
	if !maps.Equal(templates(stored.Templates), templates(c.chart.Templates)) {
		return false
	}
	canonical := func(values map[string]any) any {
		raw, err := json.Marshal(values)
		if err != nil {
			return err
		}
		var out any
		_ = json.Unmarshal(raw, &out) // raw was just encoded
		return out
	}
	if len(r.release.Config) == 0 && len(values) == 0 {
		return true
	}
	return reflect.DeepEqual(canonical(r.release.Config), canonical(values))
}

// HookEvent is a point of an operation at which hooks run.
type HookEvent string

// The points of operations.
const (
	PreInstall   = HookEvent(releasev1.HookPreInstall)
	PostInstall  = HookEvent(releasev1.HookPostInstall)
	PreUpgrade   = HookEvent(releasev1.HookPreUpgrade)
	PostUpgrade  = HookEvent(releasev1.HookPostUpgrade)
	PreRollback  = HookEvent(releasev1.HookPreRollback)
	PostRollback = HookEvent(releasev1.HookPostRollback)
	PreDelete    = HookEvent(releasev1.HookPreDelete)
	PostDelete   = HookEvent(releasev1.HookPostDelete)
	// Test is the point at which the tests of a chart run.
	Test = HookEvent(releasev1.HookTest)
)

// Hooks returns the hooks for a point of an operation, in the order of their execution.
func (r *Record) Hooks(event HookEvent) ([]Hook, error) {
	var out []Hook
	for _, h := range r.release.Hooks {
		if !slices.Contains(h.Events, releasev1.HookEvent(event)) {
			continue
		}
		object, err := parseObject(h.Manifest)
		if err != nil || object == nil {
			return nil, newError(ReasonManifest, "hook %s of revision %d cannot be decoded", h.Path, r.release.Version)
		}
		out = append(out, Hook{Manifest: Manifest{Path: h.Path, Object: object}, hook: h})
	}
	slices.SortStableFunc(out, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.hook.Weight, b.hook.Weight), strings.Compare(a.hook.Name, b.hook.Name))
	})
	return out, nil
}

// IsDeletedBefore reports whether an earlier object of the hook is deleted before the hook runs. This is the default.
func (h Hook) IsDeletedBefore() bool {
	return len(h.hook.DeletePolicies) == 0 || h.has(releasev1.HookBeforeHookCreation)
}

// IsDeletedAfterSuccess reports whether the object of the hook is deleted after all hooks of the same point succeeded.
func (h Hook) IsDeletedAfterSuccess() bool { return h.has(releasev1.HookSucceeded) }

// IsDeletedAfterFailure reports whether the object of the hook is deleted after the hook failed.
func (h Hook) IsDeletedAfterFailure() bool { return h.has(releasev1.HookFailed) }

func (h Hook) has(policy releasev1.HookDeletePolicy) bool {
	return slices.Contains(h.hook.DeletePolicies, policy) && h.hook.Kind != "CustomResourceDefinition"
}

// Phase returns "Succeeded" or "Failed" if the hook has run and ended, and otherwise "".
func (h Hook) Phase() string {
	if phase := h.hook.LastRun.Phase; phase == releasev1.HookPhaseSucceeded || phase == releasev1.HookPhaseFailed {
		return string(phase)
	}
	return ""
}

// SetStarted records in the release record that the hook runs.
func (h Hook) SetStarted(now time.Time) {
	h.hook.LastRun = releasev1.HookExecution{StartedAt: now, Phase: releasev1.HookPhaseRunning}
}

// SetEnded records in the release record that the hook has ended.
func (h Hook) SetEnded(now time.Time, succeeded bool) {
	h.hook.LastRun.CompletedAt, h.hook.LastRun.Phase = now, releasev1.HookPhaseFailed
	if succeeded {
		h.hook.LastRun.Phase = releasev1.HookPhaseSucceeded
	}
}
