// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestSetManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		manifests string // the manifests of a configuration in v1alpha2
		path      string // the beginning of the error; "" means that the manifests are valid
	}{
		"Policies [D8]":              {"{policy: fallback, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}, {policy: ignore, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}, {policy: immutable, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}}", ""},
		"Policy [D8][H-29]":          {"{policy: Manage, manifest: " + configMap + "}", `manifests[0].policy: is "Manage", want one of`},
		"NoManifest [H-29]":          {"{policy: manage}", "manifests[0].manifest: required"},
		"NullManifest [H-29]":        {"{manifest: null}", "manifests[0].manifest: required"},
		"TextManifest [H-29]":        {"{manifest: 'kind: ConfigMap'}", "manifests[0].manifest: must be an object"},
		"ListManifest [H-29]":        {"{manifest: [1]}", "manifests[0].manifest: must be an object"},
		"NoVersion [H-29]":           {"{manifest: {kind: ConfigMap, metadata: {name: a}}}", "manifests[0].manifest.apiVersion: is missing"},
		"BadVersion [H-29]":          {"{manifest: {apiVersion: a/b/c, kind: ConfigMap, metadata: {name: a}}}", `manifests[0].manifest.apiVersion: is "a/b/c"`},
		"NumberVersion [H-29]":       {"{manifest: {apiVersion: 1, kind: ConfigMap, metadata: {name: a}}}", "manifests[0].manifest.apiVersion: is 1"},
		"NoKind [H-29]":              {"{manifest: " + configMap + "}, {manifest: {apiVersion: v1, metadata: {name: a}}}", "manifests[1].manifest.kind: is missing"},
		"NoMetadata [H-29]":          {"{manifest: {apiVersion: v1, kind: ConfigMap}}", "manifests[0].manifest.metadata: required"},
		"NoName [H-29]":              {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}}", "manifests[0].manifest.metadata.name: is missing, want a name (generated names are not supported)"},
		"NumberName [H-29]":          {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: 7}}}", "manifests[0].manifest.metadata.name: is 7"},
		"NameWithSlash [H-29]":       {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}}", `manifests[0].manifest.metadata.name: "a/b"`},
		"NamespaceOfDots [H-29]":     {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ..}}}", `manifests[0].manifest.metadata.namespace: ".."`},
		"RoleWithColon":              {"{manifest: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'a:b', namespace: ''}}}", ""},
		"NumberLabel [H-29]":         {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: 7}}}}", `manifests[0].manifest.metadata.labels["app"]: is 7, want a string`},
		"ListLabel [H-29]":           {"{patchAfterDeployment: {metadata: {labels: {app: [secret]}}}, manifest: " + configMap + "}", `manifests[0].patchAfterDeployment.metadata.labels["app"]: is a list, want a string`},
		"ObjectName [H-29]":          {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: {a: secret}}}}", "manifests[0].manifest.metadata.name: is an object, want a name"},
		"LabelsNoMap [H-29]":         {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [a]}}}", "manifests[0].manifest.metadata.labels: must be an object"},
		"BadKey [H-29]":              {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {'a b': c}}}}", `manifests[0].manifest.metadata.annotations: "a b"`},
		"CapitalAnnotation":          {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {'Example.com/A': c}}}}", ""},
		"OurLabel [D11]":             {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {deployerkit.dev/item: x}}}}", `manifests[0].manifest.metadata.labels: "deployerkit.dev/item": the prefix deployerkit.dev/ is reserved`},
		"OurAnnotation [D11]":        {"{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {deployerkit.dev/x: x}}}}", "manifests[0].manifest.metadata.annotations"},
		"OurAnnotateBeforeCreate":    {"{annotateBeforeCreate: {deployerkit.dev/x: x}, manifest: " + configMap + "}", "manifests[0].annotateBeforeCreate"},
		"OurAnnotateBeforeDelete":    {"{annotateBeforeDelete: {deployerkit.dev/x: x}, manifest: " + configMap + "}", "manifests[0].annotateBeforeDelete"},
		"OurPatchAfter":              {"{patchAfterDeployment: {metadata: {labels: {deployerkit.dev/x: null}}}, manifest: " + configMap + "}", "manifests[0].patchAfterDeployment.metadata.labels"},
		"OurPatchBefore":             {"{patchBeforeDelete: {metadata: {annotations: {deployerkit.dev/x: y}}}, manifest: " + configMap + "}", "manifests[0].patchBeforeDelete.metadata.annotations"},
		"PatchNoObject [H-29]":       {"{patchBeforeDelete: [1], manifest: " + configMap + "}", "manifests[0].patchBeforeDelete: must be an object"},
		"PatchMetadata [H-29]":       {"{patchBeforeDelete: {metadata: 7}, manifest: " + configMap + "}", "manifests[0].patchBeforeDelete.metadata: must be an object"},
		"PatchNullLabels [F10]":      {"{patchAfterDeployment: {metadata: {labels: null}}, manifest: " + configMap + "}", "manifests[0].patchAfterDeployment.metadata.labels: must not"},
		"PatchNullAnnotations [F10]": {"{patchAfterDeployment: {metadata: {annotations: null}}, manifest: " + configMap + "}", "manifests[0].patchAfterDeployment.metadata.annotations: must not"},
		"PatchNullMetadata [F10]":    {"{patchBeforeDelete: {metadata: null}, manifest: " + configMap + "}", "manifests[0].patchBeforeDelete.metadata: must not"},
		"PatchManagedFields [F10]":   {"{patchAfterDeployment: {metadata: {managedFields: []}}, manifest: " + configMap + "}", "manifests[0].patchAfterDeployment.metadata.managedFields: must not"},
		"PatchDeletesLabel":          {"{patchBeforeDelete: {metadata: {labels: {app: null}}}, manifest: " + configMap + "}", ""},
		"List":                       {"{manifest: {apiVersion: v1, kind: List, items: [" + configMap + "]}}", ""},
		"EmptyList":                  {"{manifest: {apiVersion: v1, kind: List, items: []}}", ""},
		"ListItem [H-29]":            {"{manifest: {apiVersion: v1, kind: List, items: [" + configMap + ", {apiVersion: v1, kind: Pod}]}}", "manifests[0].manifest.items[1].metadata: required"},
		"ListItemNoObject [H-29]":    {"{manifest: {apiVersion: v1, kind: List, items: [7]}}", "manifests[0].manifest: items[0] must be an object"},
		"SameTwice":                  {"{manifest: " + configMap + "}, {manifest: " + configMap + "}", ""},
		"TwiceDifferent [H-29]":      {"{manifest: " + configMap + "}, {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}}", "manifests[1].manifest: describes ConfigMap ns/a again, with different content than manifests[0].manifest"},
		"TwiceInOtherVersion [H-29]": {"{manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}}, {manifest: {apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}}", "describes Deployment.apps a again"},
		"TwiceButIgnored":            {"{policy: ignore, manifest: " + configMap + "}, {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}}", ""},
		"SameNameInOtherGroup":       {"{manifest: {apiVersion: a.example.com/v1, kind: Thing, metadata: {name: a}}}, {manifest: {apiVersion: b.example.com/v1, kind: Thing, metadata: {name: a}}}", ""},
		"SameNameInOtherNamespace":   {"{manifest: " + configMap + "}, {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}}", ""},
		"UnknownKind":                {"{manifest: {apiVersion: example.com/v1, kind: Anything, metadata: {name: a}, spec: {x: {y: [1, null]}}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := v2 + "manifests: [" + tc.manifests + "]"
			if tc.path != "" {
				expectConfigError(t, config, tc.path)
				return
			}
			got, err := Decode(newItem(t, config), Options{})
			if err != nil {
				t.Fatal(err)
			}
			expectRoundTrip(t, got)
		})
	}
	t.Run("a null manifest in v1alpha1 is rejected [H-29]", func(t *testing.T) {
		expectConfigError(t, v1+"manifests: [null]", "spec.config.manifests[0].manifest: required")
	})
	t.Run("a key that occurs twice in a manifest is rejected [H-29]", func(t *testing.T) {
		raw := `{"apiVersion":"manifest.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration","manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}]}`
		if _, err := Decode(newItemFromRaw([]byte(raw)), Options{}); err == nil || !cmp.Equal(err.Error(), `Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config.manifests[0].manifest: duplicate field "data.k"`) {
			t.Errorf("Decode(...): got %v", err)
		}
	})
}

func TestExpand(t *testing.T) {
	names := func(raw string) []string {
		objects, err := Expand(&runtime.RawExtension{Raw: []byte(raw)})
		if err != nil {
			return []string{"error: " + err.Error()}
		}
		found := []string{}
		for _, obj := range objects {
			found = append(found, obj.GetName())
		}
		return found
	}
	for raw, want := range map[string][]string{
		`{"metadata":{"name":"a"}}`:                                          {"a"},
		`{"kind":"List","items":[]}`:                                         {},
		`{"kind":"X","items":[{"metadata":{"name":"a"}},{"metadata":null}]}`: {"a", ""},
		`{"metadata":{"name":"a"},"items":{"b":1}}`:                          {"a"},
		`{"items":[[]]}`:                                                     {"error: items[0] must be an object"},
		`{"kind":"List","items":[{"kind":"List","items":[{"metadata":{"name":"a"}}]},{"metadata":{"name":"b"}}]}`: {"a", "b"},
		`{"items":[{"items":[1]}]}`: {"error: items[0].items[0] must be an object"},
		`null`:                      {"error: must be an object"},
		``:                          {"error: required"},
	} {
		if diff := cmp.Diff(want, names(raw)); diff != "" {
			t.Errorf("Expand(%s): -want, +got:\n%s", raw, diff)
		}
	}
	t.Run("integers in a manifest stay integers", func(t *testing.T) {
		objects, err := Expand(&runtime.RawExtension{Raw: []byte(`{"spec":{"big":9007199254740993,"float":1.5}}`)})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"spec": map[string]any{"big": int64(9007199254740993), "float": 1.5}}
		if diff := cmp.Diff(want, objects[0].Object); diff != "" {
			t.Errorf("Expand(...): -want, +got:\n%s", diff)
		}
	})
	if _, err := Expand(nil); err == nil {
		t.Error("Expand(nil): want an error")
	}
}
