// SPDX-License-Identifier: Apache-2.0

package resources

import "testing"

func TestCheckGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		group string
		path  string // below deletionGroups[0], or "" if it is accepted
	}{
		"Namespaced":     {"{predefinedResourceGroup: {type: namespaced-resources}}", ""},
		"ClusterScoped":  {"{predefinedResourceGroup: {type: cluster-scoped-resources, forceDelete: true}}", ""},
		"CRDs":           {"{predefinedResourceGroup: {type: crds}}", ""},
		"Empty":          {"{predefinedResourceGroup: {type: empty}}", ""},
		"Custom":         {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod, names: [a], namespaces: [b]}], forceDelete: true}}", ""},
		"CustomTarget":   {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod}], deleteAllResources: true, targetName: other}}", ""},
		"None":           {"{}", ": must have either"},
		"Both":           {"{predefinedResourceGroup: {type: crds}, customResourceGroup: {resources: [{apiVersion: v1, kind: Pod}]}}", ": must have either"},
		"NoType":         {"{predefinedResourceGroup: {}}", ".predefinedResourceGroup.type"},
		"OtherType":      {"{predefinedResourceGroup: {type: CRDs}}", `.predefinedResourceGroup.type: is "CRDs"`},
		"NoResources":    {"{customResourceGroup: {}}", ".customResourceGroup.resources: required"},
		"NoVersion":      {"{customResourceGroup: {resources: [{kind: Pod}]}}", ".customResourceGroup.resources[0].apiVersion"},
		"NoKind":         {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod}, {apiVersion: v1}]}}", ".customResourceGroup.resources[1].kind"},
		"EmptyName":      {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod, names: ['']}]}}", ".customResourceGroup.resources[0].names"},
		"EmptyNamespace": {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod, namespaces: ['']}]}}", ".customResourceGroup.resources[0].namespaces"},
		"TargetAlone":    {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod}], targetName: other}}", ".customResourceGroup.targetName: needs deleteAllResources"},
		"EmptyTarget":    {"{customResourceGroup: {resources: [{apiVersion: v1, kind: Pod}], deleteAllResources: true, targetName: ''}}", ".customResourceGroup.targetName: must not be empty"},
	} {
		for _, field := range []string{"deletionGroups", "deletionGroupsDuringUpdate"} {
			t.Run(name+" [H-28][H-29]", func(t *testing.T) {
				fields := field + ": [" + tc.group + "]"
				if tc.path != "" {
					expectConfigError(t, fields, "spec.config."+field+"[0]"+tc.path)
					return
				}
				got, err := decode(t, fields, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if len(got.DeletionGroups)+len(got.DeletionGroupsDuringUpdate) != 1 {
					t.Errorf("Config(...): the group is lost: %+v", got)
				}
				expectRoundTrip(t, got)
			})
		}
	}
}
