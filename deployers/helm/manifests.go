// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// deployment is a rendered chart that is being deployed.
type deployment struct {
	inputs  inputs
	release ReleaseStatus
	crds    []release.Manifest
	desired []apply.Desired
	// document contains the values that exports without fromResource refer to.
	document map[string]any
}

// deployManifests deploys an item in manifest mode: it renders the chart, and applies the objects.
func (r *run) deployManifests(ctx context.Context) error {
	r.Managed.TakeTriggers() // changes that are reported from now on start another run
	r.EngineOptions.Hide = release.NewRedactor(r.config.Values).Texts()
	next, err := r.prepareManifests(ctx)
	if err != nil {
		r.Managed.ReturnTriggers()
		return err
	}
	if next == nil {
		return r.finish(ctx, nil)
	}
	policy := r.config.Extension.CRDs.policyOf(r.release != nil)
	if err := installCRDs(ctx, r.Run, next.crds, policy); err != nil {
		r.Managed.ReturnTriggers()
		return err
	}
	if needsNamespace(next.desired, r.config.Namespace) {
		if err := ensureNamespace(ctx, r.Managed.Cluster, r.config); err != nil {
			r.Managed.ReturnTriggers()
			return err
		}
	}
	drift := r.newDriftDetector()
	desired, err := drift.tolerate(ctx, next.desired)
	if err != nil {
		r.Managed.ReturnTriggers()
		return err
	}
	r.EngineOptions.CanCorrect = drift.canCorrect()
	if err := r.Apply(ctx, desired); err != nil {
		return err
	}
	last := r.lastRelease()
	if r.release.isHelm() { // the item has left Helm mode
		last.Former = append(last.Former, FormerRelease{Name: r.release.Name, Namespace: r.release.Namespace})
	}
	next.release.Former = last.Former
	if err := r.setLastRelease(&next.release); err != nil {
		return err
	}
	r.memory.document = &documentOf{inputs: next.inputs, document: next.document}
	return r.finish(ctx, next.document)
}

// prepareManifests returns the deployment that this call must apply. It returns nil if nothing must be applied, because
// neither the inputs nor the objects have changed since the last deployment.
func (r *run) prepareManifests(ctx context.Context) (*deployment, error) {
	req := r.newChartRenderer().request(r.deployer.manager.GetSecretClient())
	in, id, err := r.deployer.resolveInputs(ctx, req, r.Managed.Item.UID, r.config)
	if err != nil {
		return nil, err
	}
	if next := r.memory.rendered; next != nil && next.inputs == in {
		return next, nil
	}
	if r.release != nil && r.release.inputs == in && !r.exportsDue(in) {
		unchanged, err := r.newDriftDetector().isUnchanged(ctx, r.EngineOptions)
		if unchanged || err != nil || r.config.Extension.Drift.Mode == DriftWarn && !r.mustCorrect(in) {
			return nil, err
		}
	}
	loaded, err := r.newChartRenderer().loadChart(ctx, req, id)
	if err != nil {
		return nil, err
	}
	rendered, _, err := r.render(ctx, loaded, in, 1, false)
	if err != nil {
		return nil, err
	}
	next := &deployment{
		inputs: in, document: rendered.Document,
		release: ReleaseStatus{Name: r.config.Name, Namespace: r.config.Namespace, Chart: loaded.Name(), ChartVersion: loaded.Version(), inputs: in},
	}
	var manifests []release.Manifest
	manifests, next.crds = r.newChartRenderer().manifestsOf(rendered)
	if r.config.Extension.Hooks != HooksApply {
		r.reportHooks(rendered.Hooks)
	}
	r.reportIgnored(rendered.Ignored)
	if next.desired, err = r.newChartRenderer().toDesired(manifests, r.config.Namespace); err != nil {
		return nil, err
	}
	r.memory.rendered = next
	return next, nil
}

// render renders a chart for the target of the item. It also returns the input of the rendering.
func (r *run) render(ctx context.Context, loaded *release.Chart, in inputs, revision int, upgrade bool) (*release.Rendered, release.Input, error) {
	c := r.Managed.Cluster
	capabilities, err := c.DiscoverCapabilities(ctx)
	if err != nil {
		return nil, release.Input{}, err
	}
	input := r.newChartRenderer().input(loaded, revision, upgrade)
	input.Capabilities, input.Lookup = toCapabilities(capabilities), lookupIn(c, c.FindMapping)
	rendered, err := r.deployer.renderer.Render(ctx, fmt.Sprint(r.Managed.Item.UID, in), input)
	return rendered, input, renderError(err)
}
