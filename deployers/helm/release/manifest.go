// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// document is a YAML document in the output of a template.
type document struct {
	path   string
	object *unstructured.Unstructured
}

// Hook is an object that Helm creates at certain points of an operation, and that does not belong to the release.
type Hook struct {
	Manifest

	hook *releasev1.Hook
}

// setManifests splits the output of the templates into objects and hooks. It returns an error for a document that is
// not an object, with its place.
func (r *Rendered) setManifests(files map[string]string, redactor *Redactor) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		if _, err := splitDocuments(name, files[name], redactor); err != nil {
			return err
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return newError(ReasonManifest, "%s", redactor.Redact(err.Error()))
	}
	var text strings.Builder
	for _, m := range manifests {
		object, err := parseObject(m.Content)
		if err != nil {
			return newError(ReasonManifest, "%s: %s", m.Name, redactor.Redact(err.Error()))
		}
		if object == nil {
			continue
		}
		_, _ = fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", m.Name, m.Content)
		r.Objects = append(r.Objects, flatten(m.Name, object)...)
	}
	r.text = text.String()
	for _, h := range hooks {
		object, err := parseObject(h.Manifest)
		if err != nil || object == nil {
			return newError(ReasonManifest, "%s: a hook must be an object", h.Path)
		}
		r.Hooks = append(r.Hooks, Hook{Manifest: Manifest{Path: h.Path, Object: object}, hook: h})
	}
	return nil
}

// flatten returns the items of a list and of the lists that it contains, or the object itself if it is not a list. Items
// without a kind and an API version get those of their list, as with kubectl.
func flatten(name string, object *unstructured.Unstructured) []Manifest {
	items, isList := object.Object["items"].([]any)
	if !isList {
		return []Manifest{{Path: name, Object: object}}
	}
	var out []Manifest
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		one := &unstructured.Unstructured{Object: fields}
		if one.GetKind() == "" {
			one.SetKind(strings.TrimSuffix(object.GetKind(), "List"))
		}
		if one.GetAPIVersion() == "" {
			one.SetAPIVersion(object.GetAPIVersion())
		}
		out = append(out, flatten(name, one)...)
	}
	return out
}

// KeepAnnotation is the annotation with which a chart determines that an object stays in the cluster when it is no longer
// part of the release.
const KeepAnnotation = "helm.sh/resource-policy"

// IsKept reports whether an object stays in the cluster when it is no longer part of the release.
func (m Manifest) IsKept() bool {
	return strings.EqualFold(strings.TrimSpace(m.Object.GetAnnotations()[KeepAnnotation]), "keep")
}

// splitDocuments returns the objects in the output of a template. It ignores documents that contain nothing but
// comments.
func splitDocuments(name, content string, redactor *Redactor) ([]document, error) {
	var out []document
	for i, text := range sortedDocuments(content) {
		object, err := parseObject(text)
		if err != nil {
			return nil, newError(ReasonManifest, "%s, document %d: %s", name, i+1, redactor.Redact(err.Error()))
		}
		if object != nil {
			out = append(out, document{path: name, object: object})
		}
	}
	return out, nil
}

// parseObject parses a YAML document. It returns nil if the document is empty.
func parseObject(text string) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("is not valid YAML: %w", err)
	}
	if string(raw) == "null" {
		return nil, nil
	}
	object := map[string]any{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, fmt.Errorf("is not an object")
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := object[field].(string); text == "" {
			return nil, fmt.Errorf("%s is missing", field)
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	_, isList := object["items"].([]any)
	if name, _ := metadata["name"].(string); name == "" && !isList {
		return nil, fmt.Errorf("metadata.name is missing (generated names are not supported)")
	}
	return &unstructured.Unstructured{Object: object}, nil
}
