// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// discoveryClient discovers the kinds of a target. It limits the number of API group versions, because client-go sends
// one request for each of them, all at the same time.
type discoveryClient struct {
	*discovery.DiscoveryClient
	limits        *Limits
	countExceeded func(string)
}

func (k *discoveryClient) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResourcesWithContext(ctx, k)
}

func (k *discoveryClient) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	groups, resources, failed, err := k.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil || groups == nil {
		return groups, resources, failed, err
	}
	versions := 0
	for i := range groups.Groups {
		versions += len(groups.Groups[i].Versions)
	}
	if versions > k.limits.Groups {
		k.countExceeded("groups")
		return nil, nil, nil, &LimitError{Option: "Groups", Reason: fmt.Sprintf("names %d API group versions, more than %d", versions, k.limits.Groups)}
	}
	return groups, resources, failed, nil
}
