// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// statusSuffix follows the name of a resource in the name of its status subresource.
const statusSuffix = "/status"

// kindsWithStatus returns the kinds that have a status subresource.
func kindsWithStatus(groups []*restmapper.APIGroupResources) map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	for _, group := range groups {
		for version, resources := range group.VersionedResources {
			with := map[string]bool{}
			for i := range resources {
				if name, isStatus := strings.CutSuffix(resources[i].Name, statusSuffix); isStatus {
					with[name] = true
				}
			}
			for i := range resources {
				if with[resources[i].Name] {
					out[schema.GroupVersionKind{Group: group.Group.Name, Version: version, Kind: resources[i].Kind}] = true
				}
			}
		}
	}
	return out
}

// HasStatusSubresource reports whether a kind is known to have a status subresource. It sends no requests.
func (m *mapper) HasStatusSubresource(gvk schema.GroupVersionKind) bool {
	known, _ := m.current()
	found, ok := known.(*remembering)
	return ok && found.withStatus[gvk]
}
