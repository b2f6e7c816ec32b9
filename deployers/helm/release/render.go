// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Lookup reads an object, or lists all objects if the name is empty. It returns an empty map if the object or its kind
// does not exist. A namespace is ignored if the kind is cluster-scoped.
type Lookup func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error)

// Input is the input of a rendering.
type Input struct {
	// Chart is the chart. Rendering modifies it.
	Chart *Chart
	// Name and Namespace identify the release.
	Name, Namespace string
	// Revision is the revision that is rendered. Upgrade is false for the installation of a release.
	Revision int
	Upgrade  bool
	// Values are the values of the item, as DecodeValues returns them. Rendering does not modify them.
	Values map[string]any
	// Capabilities describes the target.
	Capabilities *Capabilities
	// Lookup implements the template function "lookup". If it is nil, the function finds nothing.
	Lookup Lookup
	// SkipCRDs leaves out the API versions of the CustomResourceDefinitions in the directories crds/. Otherwise the
	// templates see these API versions, even if the target does not contain the definitions yet.
	SkipCRDs bool
	// SkipSchema disables the validation of the values against the schemas of the chart.
	SkipSchema bool
}

// Capabilities describes a target cluster.
type Capabilities struct {
	// KubeVersion is the version of the API server, such as "v1.36.3".
	KubeVersion string
	// APIVersions contains the served API versions ("apps/v1") and kinds ("apps/v1/Deployment").
	APIVersions []string
}

// Rendered is the result of a rendering.
type Rendered struct {
	// CRDs are the CustomResourceDefinitions in the directories crds/, in the order in which Helm creates them.
	CRDs []Manifest
	// Ignored are the objects in the directories crds/ that are not CustomResourceDefinitions.
	Ignored []Manifest
	// Objects are the objects of the templates, without hooks, in the order in which Helm creates them.
	Objects []Manifest
	// Hooks are the hooks, in the order in which Helm sorts them.
	Hooks []Hook
	// Notes is the text of NOTES.txt.
	Notes string
	// Document contains .Values, .Chart, .Release and .Capabilities of the rendering.
	Document map[string]any

	chart  *chartv2.Chart
	values map[string]any
	text   string // the manifest of the release record
}

// Equal reports whether another rendering produced the same objects and hooks.
func (r *Rendered) Equal(other *Rendered) bool {
	same := func(a, b Hook) bool { return a.hook.Manifest == b.hook.Manifest }
	return r.text == other.text && slices.EqualFunc(r.Hooks, other.Hooks, same)
}

// Manifest is an object in the output of a chart.
type Manifest struct {
	// Path is the path of the template, such as "web/templates/service.yaml".
	Path string
	// Object is the object.
	Object *unstructured.Unstructured
}

// render renders a chart. The context is for Lookup and for the function "tick".
func render(ctx context.Context, in Input, l *limiter) (*Rendered, error) {
	c := in.Chart.chart
	redactor := NewRedactor(in.Values)
	values := deepCopy(in.Values)
	if missing := missingDependencies(c); len(missing) > 0 {
		return nil, newError(ReasonChart, "chart %s does not contain its dependencies: %s", in.Chart, strings.Join(missing, ", "))
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, newError(ReasonChart, "the dependencies of chart %s cannot be processed: %s", in.Chart, redactor.Redact(err.Error()))
	}
	out := &Rendered{chart: c, values: values}
	if err := out.setCRDs(); err != nil {
		return nil, err
	}
	caps, err := in.Capabilities.convert()
	if err != nil {
		return nil, err
	}
	if !in.SkipCRDs {
		caps.APIVersions = slices.Concat(caps.APIVersions, apiVersionsOf(out.CRDs))
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return nil, newError(ReasonVersion, "chart %s requires Kubernetes %s, the target has %s", in.Chart, want, caps.KubeVersion.Version)
	}
	options := common.ReleaseOptions{Name: in.Name, Namespace: in.Namespace, Revision: in.Revision, IsUpgrade: in.Upgrade, IsInstall: !in.Upgrade}
	top, err := util.ToRenderValuesWithSchemaValidation(c, values, options, caps, true)
	if err != nil {
		return nil, newError(ReasonValues, "the values of chart %s cannot be merged: %s", in.Chart, redactor.Redact(err.Error()))
	}
	merged, ok := top["Values"].(common.Values)
	if !ok {
		return nil, newError(ReasonValues, "the values of chart %s are %T", in.Chart, top["Values"])
	}
	if !in.SkipSchema {
		if err := checkSchemas(c, merged); err != nil {
			return nil, err
		}
	}
	if out.Document, err = toDocument(top); err != nil {
		return nil, err
	}
	files, err := renderFiles(ctx, c, top, in, l)
	if err != nil {
		return nil, err
	}
	out.Notes = takeNotes(c, files)
	return out, out.setManifests(files, redactor)
}

// missingDependencies returns the names of the dependencies that a chart declares but does not contain. Helm requires them
// even if their conditions are false.
func missingDependencies(c *chartv2.Chart) []string {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(sub *chartv2.Chart) bool { return sub.Name() == wanted.Name }) {
			missing = append(missing, wanted.Name)
		}
	}
	return missing
}

// apiVersionsOf returns the API versions and kinds that CustomResourceDefinitions define.
func apiVersionsOf(definitions []Manifest) []string {
	var out []string
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(d.Object.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			if name, _ := fields["name"].(string); name != "" && fields["served"] == true {
				out = append(out, group+"/"+name, group+"/"+name+"/"+kind)
			}
		}
	}
	return out
}

// renderFiles executes all templates of a chart. It returns the output of each template by its path.
func renderFiles(ctx context.Context, c *chartv2.Chart, top common.Values, in Input, l *limiter) (map[string]string, error) {
	var lookupErr error
	functions := l.functions()
	functions["lookup"] = func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if in.Lookup == nil {
			return map[string]any{}, nil
		}
		found, err := in.Lookup(ctx, apiVersion, kind, namespace, name)
		if err != nil && lookupErr == nil {
			lookupErr = fmt.Errorf("look up %s %s: %w", kind, path.Join(namespace, name), err)
		}
		return found, err
	}
	instrumented, err := l.instrument(c)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{CustomTemplateFuncs: functions}.RenderWithContext(ctx, instrumented, top)
	switch {
	case l.err() != nil:
		return nil, l.err()
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case lookupErr != nil:
		return nil, lookupErr
	case err != nil:
		return nil, newError(ReasonTemplate, "chart %s: %s", in.Chart, NewRedactor(in.Values).Redact(err.Error()))
	}
	size := 0
	for _, content := range files {
		size += len(content)
	}
	if size > l.limits.Output {
		return nil, newError(ReasonLimit, "the templates of chart %s produced %d bytes, more than the limit of %d", in.Chart, size, l.limits.Output)
	}
	return files, nil
}

// takeNotes removes the notes of the chart and of its subcharts from the files. It returns those of the chart.
func takeNotes(c *chartv2.Chart, files map[string]string) string {
	const suffix = "NOTES.txt"
	notes := files[path.Join(c.Name(), "templates", suffix)]
	for name := range files {
		if strings.HasSuffix(name, suffix) {
			delete(files, name)
		}
	}
	return notes
}

// setCRDs sets the objects in the directories crds/.
func (r *Rendered) setCRDs() error {
	for _, file := range r.chart.CRDObjects() {
		documents, err := splitDocuments(file.Filename, string(file.File.Data), nil)
		if err != nil {
			return err
		}
		for _, d := range documents {
			if d.object.GetKind() == "CustomResourceDefinition" {
				r.CRDs = append(r.CRDs, Manifest{Path: d.path, Object: d.object})
			} else {
				r.Ignored = append(r.Ignored, Manifest{Path: d.path, Object: d.object})
			}
		}
	}
	return nil
}

// convert returns Helm's form of the capabilities. Nil stands for the defaults of Helm.
func (c *Capabilities) convert() (*common.Capabilities, error) {
	out := common.DefaultCapabilities.Copy()
	if c == nil {
		return out, nil
	}
	version, err := common.ParseKubeVersion(c.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("the target has the version %q: %w", c.KubeVersion, err)
	}
	out.KubeVersion, out.APIVersions = *version, c.APIVersions
	return out, nil
}

// toDocument converts the input of the templates to JSON values.
func toDocument(top common.Values) (map[string]any, error) {
	raw, err := yaml.Marshal(top)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	document := map[string]any{}
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &document)
	}
	if err != nil {
		return nil, newError(ReasonValues, "the values cannot be encoded")
	}
	return document, nil
}

// deepCopy copies values. Unlike runtime.DeepCopyJSON, it accepts all types that occur in values.
func deepCopy(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for key, value := range values {
		out[key] = deepCopyValue(value)
	}
	return out
}

func deepCopyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return deepCopy(v)
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = deepCopyValue(element)
		}
		return out
	}
	return value
}
