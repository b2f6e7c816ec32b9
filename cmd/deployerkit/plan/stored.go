// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// Stored plans a reconcile of a deploy item as it is stored in the Landscaper cluster, by the manifest deployer with
// the given options. The parameter `wrap` wraps the transports to both clusters; it may be nil. If Stored returns an
// error, the returned plan contains the changes that could be determined.
func Stored(ctx context.Context, cfg *rest.Config, key types.NamespacedName, options manifest.Options, wrap func(http.RoundTripper) http.RoundTripper) (apply.Plan, error) {
	cfg = rest.CopyConfig(cfg)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	c, err := newClient(cfg)
	if err != nil {
		return apply.Plan{}, err
	}
	ls := &landscaper{Client: c, config: cfg}
	d := newManifestDeployer(options)
	d.wrap = wrap
	f := &flags{name: key.Name, namespace: key.Namespace}
	item, err := f.item(ctx, ls, d.itemType, nil)
	if err != nil {
		return apply.Plan{}, err
	}
	to, err := d.openTarget(ctx, ls, item)
	if err != nil {
		return apply.Plan{}, err
	}
	defer to.close()
	return manifest.Plan(ctx, ls.Client, to.Client, item, options)
}
