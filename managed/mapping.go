// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// GetMapping returns the REST mapping of a kind in the given version. It returns an error if the cluster does not serve
// the kind in this version; see FindMapping for what this means.
func (c *Cluster) GetMapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
}

// FindResource returns the resource of an object. If the cluster no longer serves the version of the reference, it is
// the resource in another version. FindResource returns an error if the cluster serves the kind in no version.
func (c *Cluster) FindResource(ref apply.Ref) (schema.GroupVersionResource, error) {
	gvk := ref.GVK()
	mapping, err := c.GetMapping(gvk)
	if absence.CanMeanNotServed(err) {
		if other, failed := c.RESTMapper().RESTMapping(gvk.GroupKind()); failed == nil {
			mapping, err = other, nil
		}
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// FindMapping returns the REST mapping of a kind. It returns nil, nil if the cluster is proved to have no objects of
// the kind (see package absence). If the cluster does not serve the kind at the moment, FindMapping returns a
// [deployerlib.WaitFor] that names the kind. Otherwise it returns the error of the requests.
func (c *Cluster) FindMapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.GetMapping(gvk)
	if err == nil {
		return mapping, nil
	}
	err = c.addReason(ctx, gvk, err)
	if absence.ClassifyError(absence.Object{Kind: gvk.GroupKind()}, err).IsProved() {
		return nil, nil
	}
	return nil, toWaitError(gvk, err)
}

// addReason adds the reason to an error that leaves open whether the cluster serves a kind.
func (c *Cluster) addReason(ctx context.Context, gvk schema.GroupVersionKind, err error) error {
	return absence.NewProver(c.Client, c.RESTMapper()).AddKindError(ctx, gvk.GroupKind(), err)
}

// toWaitError converts an error that means that the cluster does not serve a kind at the moment. The result is a
// [deployerlib.WaitFor]. Other errors stay as they are, with the name of the kind.
func toWaitError(gvk schema.GroupVersionKind, err error) error {
	if absence.ClassifyError(absence.Object{Kind: gvk.GroupKind()}, err) == absence.MeaningNotServed {
		return deployerlib.WaitFor(oneLine(apply.DescribeUnserved(gvk, err)), pollIntervalUnwatched)
	}
	return fmt.Errorf("find the resource of %s: %w", gvk.GroupKind(), err)
}
