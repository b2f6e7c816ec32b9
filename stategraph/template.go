// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TemplateDir is the directory in which templates lie, beside the code that uses them.
const TemplateDir = "templates"

// TemplateData is what a template is given as ".".
type TemplateData struct {
	// Item is the deploy item that is processed.
	Item TemplateItem
	// Config is spec.config of the item. A field that it does not have is an error, unless it is asked for with get or
	// dig.
	Config map[string]any
	// Component is the name of the component, Instance that of the instance within ForEach.
	Component, Instance string
	// Element is what ForEach makes the instance for.
	Element any
	// Data is what the function of WithData returned.
	Data any

	ctx context.Context //nolint:containedctx // the methods are called by the template, which has none; it lives as long as the call
}

// TemplateItem is what a template learns about the deploy item.
type TemplateItem struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// NameOf is the name of the object of a required component: {{ .NameOf "config" }}. It is empty if the component keeps none
// for this item. See Name.
func (d *TemplateData) NameOf(component string) (string, error) { return Name(d.ctx, component) }

// Output is the object of a required component as it is in the cluster: {{ (.Output "service").spec.clusterIP }}; empty if it
// keeps none for this item. With the name of an output that the component declares with WithOutput, it is the value of that
// one: {{ .Output "service" "address" }}.
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

// Value is what a required component left with SetOutput.
func (d *TemplateData) Value(component string) (any, error) { return Output[any](d.ctx, component) }

// WithData gives a Template more to work with, as .Data. It is called in each run.
func WithData(data func(ctx context.Context) (any, error)) Option {
	return func(o *options) {
		if data == nil {
			o.faults = append(o.faults, "WithData: the function is nil")
			return
		}
		o.data = data
	}
}

// Template keeps the objects of a file with Go templates: one YAML document for each. files is normally an embed.FS in
// the package of the graph, with the files in the directory "templates" beside the code:
//
//	//go:embed all:templates
//	var files embed.FS
//
//	stategraph.Template(files, "statefulset.yaml")
//
// Templates are given a TemplateData and have the functions of sprig that always give the same (no time, no random, no keys), and toYaml, fromYaml and
// required. Files whose name begins with "_" hold named templates for all others ("all:" embeds them too). Empty documents are left out, so
// that "if" can decide about an object. Readiness, names and listeners are as for Object. At most 1 MiB is made.
//
// A component that a template asks for by a constant name is required: {{ .NameOf "service" }} needs no other mention of it.
// Errors: found when the graph is built are a file that is missing or cannot be parsed, a component or an output that does not
// exist, and the use of an optional component outside of "if", "with" and "default". A value that is missing fails the component.
// All name file and line.
func Template(files fs.FS, name string, opts ...Option) Resource {
	r := newObjects(opts, nil)
	source, err := parseTemplate(files, name)
	if err != nil {
		r.faults = append(r.faults, err.Error())
	} else {
		found := scan(source)
		r.uses, r.faults, r.optional = found.uses, append(r.faults, found.faults...), r.optional || isOptional(source)
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		if err != nil {
			return nil, err
		}
		data, err := templateData(ctx, r.data)
		if err != nil {
			return nil, err
		}
		return renderTemplate(source, data)
	}
	return r
}

// parseTemplate reads a template and the named ones beside it.
func parseTemplate(files fs.FS, name string) (*template.Template, error) {
	if files == nil {
		return nil, fmt.Errorf("template %s: there are no files (nil)", name)
	}
	file := path.Join(TemplateDir, name)
	parsed := template.New(file).Option("missingkey=error").Funcs(functions())
	partials, err := fs.Glob(files, TemplateDir+"/_*")
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", file, err)
	}
	for _, partial := range append(partials, file) {
		text, err := fs.ReadFile(files, partial)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", partial, err)
		}
		at := parsed
		if partial != file {
			at = parsed.New(partial)
		}
		if _, err := at.Parse(string(text)); err != nil {
			return nil, err // begins with "template: FILE:LINE:"
		}
	}
	return parsed, nil
}

// templateData collects what a template is given. Everything in it is new, for a template may change it.
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

// renderTemplate makes the objects.
func renderTemplate(source *template.Template, data *TemplateData) ([]*unstructured.Unstructured, error) {
	out := &bounded{ctx: data.ctx}
	if err := source.Execute(out, data); err != nil {
		return nil, templateFault(err) // begins with "template: FILE:LINE:COLUMN:"
	}
	objs, err := documents(out.text.String())
	if err != nil {
		return nil, fmt.Errorf("template: %s: %w", source.Name(), err)
	}
	return objs, nil
}

// templateValue is where text/template quotes a value, which may be a secret of the configuration.
var templateValue = regexp.MustCompile(`(?s)(range can't iterate over) .*$`)

// templateFault shows no values, and can still be recognised.
func templateFault(err error) error {
	if text := templateValue.ReplaceAllString(err.Error(), "$1 it"); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// errTooLong ends a template that makes more than an item could hold.
var errTooLong = fmt.Errorf("the result is longer than %d bytes", maxRendered)

// bounded is a buffer for at most maxRendered bytes, that refuses to go on when the context ended.
type bounded struct {
	ctx  context.Context //nolint:containedctx // text/template has no context; it lives as long as the call
	text bytes.Buffer
}

// Write adds to the buffer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxRendered {
		return 0, errTooLong
	}
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.text.Write(p)
}

// separator tells whether a line begins another document.
func separator(line string) bool {
	rest, found := strings.CutPrefix(line, "---")
	return found && (strings.TrimSpace(rest) == "" || strings.HasPrefix(strings.TrimSpace(rest), "#"))
}
