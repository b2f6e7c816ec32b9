// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// Capabilities describes what an API server serves.
type Capabilities struct {
	// Version is the version of Kubernetes, such as "v1.36.3".
	Version string
	// Groups are the API groups, and Resources their resources. The resources of API services that do not respond are
	// missing.
	Groups    []*metav1.APIGroup
	Resources []*metav1.APIResourceList
}

// DiscoverCapabilities discovers what the target serves, within the limits for the target. It does not use earlier
// results.
func (c *Client) DiscoverCapabilities(ctx context.Context) (*Capabilities, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.mapper.timeout, limits.ErrNoResponse)
	defer cancel()
	ctx, release := ReserveMemory(ctx)
	defer release()
	return DiscoverCapabilities(ctx, c.mapper.disco)
}

// DiscoverCapabilities discovers what an API server serves. Use the method of Client for servers that may be hostile.
func DiscoverCapabilities(ctx context.Context, from discovery.DiscoveryInterfaceWithContext) (*Capabilities, error) {
	version, err := from.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the version of the target: %w", err)
	}
	groups, resources, err := from.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover the kinds of the target: %w", err)
	}
	return &Capabilities{Version: version.GitVersion, Groups: groups, Resources: resources}, nil
}
