// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// chartRenderer fetches the chart of an item, and converts its objects to the input of the apply engine.
type chartRenderer struct {
	item    *lsv1alpha1.DeployItem
	context *lsv1alpha1.Context // may be nil
	config  *Config
	options *Options
	// deployed is true if the item was deployed before.
	deployed bool
}

// newChartRenderer returns a chartRenderer for the item.
func (r *run) newChartRenderer() *chartRenderer {
	return &chartRenderer{item: r.Managed.Item, context: r.context, config: r.config, options: &r.deployer.options, deployed: r.release != nil}
}

// request returns the request for the chart of the item. The parameter `secrets` reads Secrets in the Landscaper cluster.
func (c *chartRenderer) request(secrets client.Reader) chart.Request {
	return chart.Request{
		Chart: c.config.Chart, Context: c.context, Namespace: c.item.Namespace, Secrets: secrets, Keyring: c.config.Extension.Verify,
	}
}

// loadChart fetches and loads a chart.
func (c *chartRenderer) loadChart(ctx context.Context, req chart.Request, id chart.Identity) (*release.Chart, error) {
	archive, err := c.options.Sources.Fetch(ctx, req, id)
	if err != nil {
		return nil, chartError(err)
	}
	files, err := chart.Unpack(archive.Data, c.options.ChartLimits)
	if err != nil {
		return nil, chartError(err)
	}
	loaded, err := release.Load(files)
	return loaded, renderError(err)
}

// input returns the input of a rendering, without the data that comes from the target.
func (c *chartRenderer) input(loaded *release.Chart, revision int, upgrade bool) release.Input {
	settings := c.config.Install
	if upgrade {
		settings = c.config.Upgrade
	}
	return release.Input{
		Chart: loaded, Name: c.config.Name, Namespace: c.config.Namespace, Revision: revision, Upgrade: upgrade, Values: c.config.Values,
		SkipSchema: settings.SkipSchemaValidation,
		SkipCRDs:   c.config.Extension.CRDs.policyOf(upgrade || !c.config.HelmDeployment && c.deployed) == CRDsSkip,
	}
}

// manifestsOf returns the objects to apply in manifest mode, and the CustomResourceDefinitions to install before.
func (c *chartRenderer) manifestsOf(rendered *release.Rendered) (manifests, crds []release.Manifest) {
	manifests, crds = rendered.Objects, rendered.CRDs
	if c.config.Extension.Hooks == HooksApply {
		for _, hook := range rendered.Hooks {
			manifests = append(manifests, hook.Manifest)
		}
	}
	if c.config.Extension.CRDs.Delete {
		return slices.Concat(crds, manifests), nil
	}
	return manifests, crds
}

// toDesired converts objects of the chart to the input of the apply engine. Objects without a namespace get the given
// one.
func (c *chartRenderer) toDesired(manifests []release.Manifest, namespace string) ([]apply.Desired, error) {
	var out []apply.Desired
	seen := map[apply.Ref]string{}
	for _, m := range manifests {
		object := m.Object.DeepCopy()
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace) // the apply engine removes the namespace of cluster-scoped objects
		}
		if err := checkMetadata(m.Path, object); err != nil {
			return nil, err
		}
		c.label(object)
		ref := apply.ToRef(object)
		ref.APIVersion = ref.GVK().Group
		if first, twice := seen[ref]; twice {
			return nil, newConfigError("chart", "%s: %s is also in %s", m.Path, describe(object), first)
		}
		seen[ref] = m.Path
		one := apply.Desired{Object: object}
		if m.IsKept() {
			one.Policy = apply.PolicyKeep
		}
		out = append(out, one)
	}
	return out, nil
}

// label adds the label of Landscaper's own deployer, if the name of the item is a valid value.
func (c *chartRenderer) label(object *unstructured.Unstructured) {
	name := c.item.Name
	if len(validation.IsValidLabelValue(name)) > 0 {
		return
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[helmv1alpha1.ManagedDeployItemLabel] = name
	object.SetLabels(labels)
}

// desiredOf converts the objects of a record to the input of the apply engine.
func (c *chartRenderer) desiredOf(record *release.Record) ([]apply.Desired, error) {
	manifests, err := record.Objects()
	if err != nil {
		return nil, renderError(err)
	}
	return c.releaseObjects(manifests, record.Name(), record.Namespace())
}

// releaseObjects converts objects to the input of the apply engine, and marks them as objects of the release.
func (c *chartRenderer) releaseObjects(manifests []release.Manifest, name, namespace string) ([]apply.Desired, error) {
	desired, err := c.toDesired(manifests, namespace)
	for i := range desired {
		markForRelease(desired[i].Object, name, namespace)
		desired[i].Adoption, desired[i].Strategy = apply.AdoptionAlways, apply.StrategyApply // checkOwners has checked the owners
	}
	return desired, err
}
