// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// statusSuffix follows the name of a resource in the name of its status subresource.
const statusSuffix = "/status"

// findKindsWithStatus returns the kinds that have a status subresource.
func findKindsWithStatus(groups []*restmapper.APIGroupResources) map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	for _, group := range groups {
		for version, resources := range group.VersionedResources {
			for _, kind := range listKindsWithStatus(resources) {
				out[schema.GroupVersionKind{Group: group.Group.Name, Version: version, Kind: kind}] = true
			}
		}
	}
	return out
}

// listKindsWithStatus returns the kinds of one version that have a status subresource.
func listKindsWithStatus(resources []metav1.APIResource) []string {
	with := map[string]bool{}
	for i := range resources {
		if name, isStatus := strings.CutSuffix(resources[i].Name, statusSuffix); isStatus {
			with[name] = true
		}
	}
	var kinds []string
	for i := range resources {
		if with[resources[i].Name] {
			kinds = append(kinds, resources[i].Kind)
		}
	}
	return kinds
}

// HasStatusSubresource reports whether a kind is known to have a status subresource. It sends no requests.
func (m *mapper) HasStatusSubresource(gvk schema.GroupVersionKind) bool {
	return m.getResult().withStatus[gvk]
}
