// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// ListDeletableResources discovers the resources of the target whose objects can be listed and deleted, each in its
// preferred version. The result `missing` contains the names of group versions whose API service does not respond.
// ListDeletableResources returns an error if the target does not respond.
func (c *Client) ListDeletableResources(ctx context.Context) (found []metav1.APIResource, missing []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.mapper.timeout, limits.ErrNoResponse)
	defer cancel()
	ctx, release := ReserveMemory(ctx)
	defer release()
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, c.mapper.disco)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("discover the kinds of the target: %w", err)
	}
	for version := range failed {
		missing = append(missing, version.String())
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			missing = append(missing, list.GroupVersion)
			continue
		}
		for _, resource := range list.APIResources {
			resource.Group, resource.Version = version.Group, version.Version
			found = append(found, resource)
		}
	}
	slices.SortFunc(found, func(a, b metav1.APIResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return found, missing, nil
}
