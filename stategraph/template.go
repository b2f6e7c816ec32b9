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

// TemplateData is the data that a template accesses as ".".
type TemplateData struct {
	// Item is the current deploy item.
	Item ItemInfo
	// Config is spec.config of the item. Reading a missing field is an error, except with the functions get and dig.
	Config map[string]any
	// Component is the name of the component. Instance is the name of the instance of ForEach.
	Component, Instance string
	// Element is the element of the instance of ForEach.
	Element any
	// Data is the result of the function that was passed to WithData.
	Data any

	ctx context.Context //nolint:containedctx // a template calls the methods without a context; the data is not used after the call
}

// NameOf returns the name of the object of a required component, as in {{ .NameOf "config" }}. It returns "" if the
// component has no object for this item. See Name.
func (d *TemplateData) NameOf(component string) (string, error) { return Name(d.ctx, component) }

// Output returns the object of a required component as it is in the cluster. The result is empty if the component has
// no object for this item. A template reads a field of the object as in {{ (.Output "service").spec.clusterIP }}. If
// there is a second argument, it is the name of an output that the component declares with WithOutput, and the result
// is the value of this output, as in {{ .Output "service" "address" }}.
func (d *TemplateData) Output(component string, output ...string) (any, error) {
	if len(output) > 1 {
		return nil, errors.New("Output takes a component and at most one output")
	}
	live, err := onlyObject(d.ctx, component)
	switch {
	case err != nil:
		return nil, err
	case len(output) == 1:
		return readDeclaredOutput(d.ctx, component, output[0])
	case live == nil:
		return map[string]any(nil), nil
	}
	return live.DeepCopy().Object, nil
}

// Value returns the value that a required component passed to SetOutput.
func (d *TemplateData) Value(component string) (any, error) { return Output[any](d.ctx, component) }

// WithData sets a function that returns additional data for a Template. The template accesses the data as .Data. The
// function is called in each run.
func WithData(data func(ctx context.Context) (any, error)) Option {
	return func(o *options) {
		if data == nil {
			o.faults = append(o.faults, "WithData: the function is nil")
			return
		}
		o.data = data
	}
}

// Template manages the objects that a file describes. The file contains a Go template that renders one YAML document
// for each object. Template reads the file from the directory "templates" of `files`, which is normally an embed.FS:
//
//	//go:embed all:templates
//	var files embed.FS
//
//	stategraph.Template(files, "statefulset.yaml")
//
// The data of a template is a TemplateData. A template can call toYaml, fromYaml, required and the deterministic
// functions of sprig. It cannot call functions for the time, random values or new keys, because their results differ in
// each run. Files whose names begin with "_" contain named templates for all other files. A go:embed directive omits
// such files unless its pattern has the prefix "all:". Empty documents are ignored, so an "if" can exclude an object.
// Readiness, names and listeners are the same as for Object. The rendered text must not exceed 1 MiB.
//
// A component requires each component that its template uses by a constant name, as in {{ .NameOf "service" }}. Build
// returns an error if a file is missing or cannot be parsed, or if a component or output does not exist. It also
// returns an error if a template uses an optional component outside of "if", "with" and "default". If a value is
// missing during a run, the component fails. All errors contain the file and the line.
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
		return source.RenderObjects(ctx, data)
	}
	return r
}

// templateData returns the data for a template. All of it is copied, because a template may modify it.
func templateData(ctx context.Context, more func(context.Context) (any, error)) (*TemplateData, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return nil, err
	}
	data := &TemplateData{Item: newItemInfo(n.run.item), Config: map[string]any{}, Component: n.component, ctx: ctx}
	if n.element != nil {
		data.Instance, data.Element = n.instance, n.value
	}
	if config := n.run.item.Spec.Configuration; config != nil && len(config.Raw) > 0 {
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
