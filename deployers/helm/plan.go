// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/targets"
)

// ReleasePlan describes what a reconcile of an item would do.
type ReleasePlan struct {
	// Objects are the objects that would be created, changed and deleted.
	apply.Plan

	// Chart is the name and the version of the chart.
	Chart string
	// Revision is the number of the revision that would be created. It is zero in manifest mode.
	Revision int
	// Values are the paths of the values that differ from those of the last revision, such as "image.tag changed". It is
	// empty in manifest mode, and if there is no revision.
	Values []string
	// CRDs are the names of the CustomResourceDefinitions that would be created or replaced, unless they exist already
	// and the policy is CRDsCreate.
	CRDs []string
	// Hooks are the hooks that would run, each as "event kind name".
	Hooks []string
	// Unstable means that two renderings of the chart have different results, for example because of a random value.
	// The deployer renders the chart only once for each change of its inputs.
	Unstable bool
}

// String returns the plan as text for users.
func (p ReleasePlan) String() string {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "chart %s\n", p.Chart)
	if p.Revision > 0 {
		_, _ = fmt.Fprintf(&out, "revision %d\n", p.Revision)
	}
	for _, change := range p.Values {
		_, _ = fmt.Fprintf(&out, "value %s\n", change)
	}
	for _, name := range p.CRDs {
		_, _ = fmt.Fprintf(&out, "definition %s\n", name)
	}
	for _, hook := range p.Hooks {
		_, _ = fmt.Fprintf(&out, "hook %s\n", hook)
	}
	if p.Unstable {
		out.WriteString("the chart renders differently each time\n")
	}
	out.WriteString(p.Plan.String())
	return out.String()
}

// Plan returns what a reconcile of the item would do if its inputs had changed. Plan writes nothing. The parameter `ls`
// is a client for the cluster of the deploy items, `lsCtx` the Context of the item (or nil), and `target` a config for
// the target of the item. See manifest.Plan for the meaning of the item's UID and provider status. If the configuration
// or the chart is invalid, the error is one of deployerlib.NewConfigError.
func Plan(ctx context.Context, ls client.Reader, target *rest.Config, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, opts Options) (ReleasePlan, error) {
	config, err := Decode(di, opts)
	if err != nil {
		return ReleasePlan{}, err
	}
	status, last, err := DecodeStatus(di)
	if err != nil {
		return ReleasePlan{}, err
	}
	requests, err := rest.HTTPClientFor(target)
	if err != nil {
		return ReleasePlan{}, fmt.Errorf("create a client for the target: %w", err)
	}
	c, err := client.New(target, client.Options{HTTPClient: requests})
	if err != nil {
		return ReleasePlan{}, fmt.Errorf("create a client for the target: %w", err)
	}
	if opts.Sources.Inline == nil {
		opts.Sources.Inline = chart.Inline()
	}
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(target, requests)
	if err != nil {
		return ReleasePlan{}, fmt.Errorf("create a client for the target: %w", err)
	}
	capabilities, err := targets.DiscoverCapabilities(ctx, discoverer)
	if err != nil {
		return ReleasePlan{}, err
	}
	p := planner{
		chartRenderer: &chartRenderer{item: di, context: lsCtx, config: config, options: &opts, deployed: last != nil},
		client:        c, capabilities: toCapabilities(capabilities), inventory: status.Inventory,
	}
	return p.plan(ctx, ls)
}

// planner computes a plan.
type planner struct {
	*chartRenderer

	client       client.Client
	capabilities *release.Capabilities
	inventory    apply.Inventory
}

// plan renders the chart and compares the objects with those in the target.
func (p *planner) plan(ctx context.Context, ls client.Reader) (ReleasePlan, error) {
	storage := release.NewStorage(p.client, p.config.Namespace, p.config.Name)
	revisions, err := storage.List(ctx)
	if err != nil {
		return ReleasePlan{}, err
	}
	number, upgrade := 1, false
	if p.config.HelmDeployment && len(revisions) > 0 {
		number, upgrade = revisions[len(revisions)-1].Number+1, wasDeployed(revisions)
	}
	rendered, err := p.renderTwice(ctx, ls, number, upgrade)
	if err != nil {
		return ReleasePlan{}, err
	}
	out := rendered.plan
	var desired []apply.Desired
	if p.config.HelmDeployment {
		if err := p.addRevision(ctx, &out, storage, number); err != nil {
			return ReleasePlan{}, err
		}
		if !p.config.Extension.DisableHooks {
			out.Hooks = plannedHooks(rendered.first, upgrade)
		}
		desired, err = p.releaseObjects(rendered.first.Objects, p.config.Name, p.config.Namespace)
	} else {
		manifests, _ := p.manifestsOf(rendered.first)
		desired, err = p.toDesired(manifests, p.config.Namespace)
	}
	if err != nil {
		return ReleasePlan{}, err
	}
	out.CRDs = p.plannedCRDs(rendered.first, upgrade)
	owner, inventory, err := managed.PlanInventory(ctx, ls, p.client, p.item, p.inventory)
	if err != nil {
		return ReleasePlan{}, err
	}
	options := apply.Options{
		Strategy: p.config.Strategy, Recreate: p.options.Recreate, SharedKinds: p.options.SharedKinds,
		Adoption: p.options.Adoption, FindOwner: managed.FindOwner(ls), Hide: release.NewRedactor(p.config.Values).Texts(),
	}
	out.Plan, err = apply.New(p.client, p.client.RESTMapper(), options).Plan(ctx, owner, desired, inventory)
	return out, err
}

// plannedCRDs returns the names of the CustomResourceDefinitions that would be created or replaced.
func (p *planner) plannedCRDs(rendered *release.Rendered, upgrade bool) (out []string) {
	if p.config.Extension.CRDs.policyOf(upgrade || !p.config.HelmDeployment && p.deployed) == CRDsSkip {
		return nil
	}
	for _, definition := range rendered.CRDs {
		out = append(out, definition.Object.GetName())
	}
	return out
}

// addRevision adds the number of the next revision to a plan, and the paths of the values that differ from those of the
// revision before.
func (p *planner) addRevision(ctx context.Context, out *ReleasePlan, storage *release.Storage, number int) error {
	out.Revision = number
	if number == 1 {
		return nil
	}
	last, err := storage.Get(ctx, number-1)
	if err != nil {
		return renderError(err)
	}
	out.Values = last.ListChangedValues(p.config.Values)
	return nil
}

// twice is the result of two renderings.
type twice struct {
	first *release.Rendered
	plan  ReleasePlan
}

// renderTwice renders the chart twice, to find out whether the result is stable.
func (p *planner) renderTwice(ctx context.Context, ls client.Reader, revision int, upgrade bool) (out twice, err error) {
	req := p.request(ls)
	id, err := p.options.Sources.Resolve(ctx, req)
	if err != nil {
		return out, chartError(err)
	}
	find := func(_ context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
		mapping, err := p.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return mapping, err
	}
	renderer := release.NewRenderer(p.options.RenderLimits)
	for i := range 2 {
		loaded, err := p.loadChart(ctx, req, id)
		if err != nil {
			return out, err
		}
		input := p.input(loaded, revision, upgrade)
		input.Capabilities, input.Lookup = p.capabilities, lookupIn(p.client, find)
		rendered, err := renderer.Render(ctx, "plan", input)
		if err != nil {
			return out, renderError(err)
		}
		if i == 0 {
			out.first, out.plan.Chart = rendered, loaded.String()
		} else {
			out.plan.Unstable = !rendered.Equal(out.first)
		}
	}
	return out, nil
}

// plannedHooks describes the hooks that an installation or an upgrade would run.
func plannedHooks(rendered *release.Rendered, upgrade bool) (out []string) {
	record := release.NewRecord(release.Input{}, rendered, false)
	events := []release.HookEvent{release.PreInstall, release.PostInstall}
	if upgrade {
		events = []release.HookEvent{release.PreUpgrade, release.PostUpgrade}
	}
	for _, event := range events {
		hooks, err := record.Hooks(event)
		if err != nil {
			continue // rendering has checked the hooks
		}
		for _, hook := range hooks {
			out = append(out, fmt.Sprintf("%s %s", event, describe(hook.Object)))
		}
	}
	return out
}
