// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// TemplateDir is the directory of the templates, beside the code that uses them.
const TemplateDir = template.Dir

// TemplateData is the data of a template, which it gets as ".".
type TemplateData struct {
	// Item is the current deploy item.
	Item TemplateItem
	// Config is spec.config of the item. A field that it does not have is an error, unless it is read with get or dig.
	Config map[string]any
	// Component is the name of the component. Instance is that of the instance within ForEach.
	Component, Instance string
	// Element is the element for which ForEach makes the instance.
	Element any
	// Data is what the function of WithData returned.
	Data any

	ctx context.Context //nolint:containedctx // the methods are called by the template, which has none; it lives as long as the call
}

// TemplateItem is what a template gets of the deploy item.
type TemplateItem struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// NameOf returns the name of the object of a required component, as in {{ .NameOf "config" }}. It is empty if the
// component keeps none for this item. See Name.
func (d *TemplateData) NameOf(component string) (string, error) { return Name(d.ctx, component) }

// Output returns the object of a required component as it is in the cluster, as in {{ (.Output
// "service").spec.clusterIP }}. It is empty if the component keeps none for this item. With the name of an output that
// the component declares with WithOutput, it returns the value of that output, as in {{ .Output "service" "address" }}.
func (d *TemplateData) Output(component string, output ...string) (any, error) {
	if len(output) > 1 {
		return nil, errors.New("Output takes a component and at most one output")
	}
	live, err := onlyObject(d.ctx, component)
	switch {
	case err != nil:
		return nil, err
	case len(output) == 1:
		return OutputOf(d.ctx, component, output[0])
	case live == nil:
		return map[string]any(nil), nil
	}
	return live.DeepCopy().Object, nil
}

// Value returns what a required component left with SetOutput.
func (d *TemplateData) Value(component string) (any, error) { return Output[any](d.ctx, component) }

// WithData gives a Template additional data, as .Data. data is called in each run.
func WithData(data func(ctx context.Context) (any, error)) Option {
	return func(o *options) {
		if data == nil {
			o.faults = append(o.faults, "WithData: the function is nil")
			return
		}
		o.data = data
	}
}

// Template keeps the objects of a file of Go templates, with one YAML document for each object. files is normally an
// embed.FS in the package of the graph, with the files in the directory "templates" beside the code:
//
//	//go:embed all:templates
//	var files embed.FS
//
//	stategraph.Template(files, "statefulset.yaml")
//
// Templates get a TemplateData and have the functions of sprig that always return the same (no time, no random, no
// keys), and toYaml, fromYaml and required. Files whose name begins with "_" hold named templates for all others
// ("all:" embeds them too). Empty documents are left out, so that "if" can decide about an object. Readiness, names and
// listeners are as for Object. The result has at most 1 MiB.
//
// A component that a template uses by a constant name is required, so {{ .NameOf "service" }} needs no other mention of
// it. Build finds files that are missing or cannot be parsed, components or outputs that do not exist, and uses of an
// optional component outside of "if", "with" and "default". A value that is missing fails the component. All errors
// name file and line.
func Template(files fs.FS, name string, opts ...Option) Resource {
	r := newObjects(opts, nil)
	source, err := template.Read(files, name)
	if err != nil {
		r.faults = append(r.faults, err.Error())
	} else {
		r.uses, r.faults, r.optional = source.Uses, append(r.faults, source.Faults...), r.optional || source.Optional
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		if err != nil {
			return nil, err
		}
		data, err := templateData(ctx, r.data)
		if err != nil {
			return nil, err
		}
		return source.Objects(ctx, data)
	}
	return r
}

// templateData collects the data of a template. All of it is new, because a template may change it.
func templateData(ctx context.Context, more func(context.Context) (any, error)) (*TemplateData, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, err
	}
	item := n.Item()
	data := &TemplateData{
		Item: TemplateItem{
			Name: item.Name, Namespace: item.Namespace, UID: string(item.UID),
			Labels: item.Labels, Annotations: item.Annotations,
		},
		Config:    map[string]any{},
		Component: n.component, Instance: n.instance, Element: n.element, ctx: ctx,
	}
	if config := item.Spec.Configuration; config != nil && len(config.Raw) > 0 {
		if err := utiljson.Unmarshal(config.Raw, &data.Config); err != nil {
			return nil, fmt.Errorf("decode spec.config: %w", err)
		}
	}
	if more != nil {
		if data.Data, err = more(ctx); err != nil {
			return nil, err
		}
	}
	return data, nil
}
