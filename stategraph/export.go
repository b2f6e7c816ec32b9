// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// export is a value that each item exports to Landscaper. Exactly one of the fields `output`, `path` and `text` is set.
type export struct {
	name   string
	place  int                // the index of the component in the graph
	output string             // the name of an output that is declared with WithOutput
	path   *jsonpath.Path     // a field of the component's only object
	text   *template.Template // a template that renders the value
}

// exportSpec contains the arguments of a call of Builder.AddExport. Build checks them.
type exportSpec struct{ name, component, value string }

// AddExport exports a value under a name, so that Landscaper can use it in data exports. The library writes the value
// when the component is ready, and again when the value changes. The value is deleted together with the item. The given
// value is one of the following:
//
//   - the name of an output that the component declares with WithOutput
//   - a JSON path into the only object of the component, such as ".metadata.name"
//   - a Go template, recognized by "{{", that renders the exported text
//
// The template gets the same data as a Template. It may use the component itself and all components that the component
// requires. If the component has no object for an item, nothing is exported. If a field does not exist yet, the item is
// not complete until the field exists.
func (b *Builder) AddExport(name, component, value string) *Builder {
	b.exports = append(b.exports, exportSpec{name: name, component: component, value: value})
	return b
}

// addExports checks the exports and adds them to the graph.
func (g *Graph) addExports(wanted []exportSpec) []error {
	var faults []error
	names := map[string]bool{}
	for _, e := range wanted {
		place, found := g.index[e.component]
		switch {
		case e.name == "" || names[e.name]:
			faults = append(faults, fmt.Errorf("export %q: the name is empty or used twice", e.name))
			continue
		case !found:
			faults = append(faults, fmt.Errorf("export %q: there is no component %q%s", e.name, e.component, g.suggest(e.component)))
			continue
		}
		names[e.name] = true
		parsed, err := g.parseExport(place, e)
		if err != nil {
			faults = append(faults, fmt.Errorf("export %q: %w", e.name, err))
		}
		g.exports = append(g.exports, parsed)
	}
	return faults
}

// parseExport parses the value of an export.
func (g *Graph) parseExport(place int, e exportSpec) (export, error) {
	out := export{name: e.name, place: place}
	kept := asObjectsResource(g.nodes[place].resource)
	var err error
	switch {
	case strings.Contains(e.value, "{{"):
		if out.text, err = template.Parse("export", e.value); err != nil {
			return out, err
		}
		return out, g.checkExportTemplate(e.component, out.text)
	case kept != nil && kept.outputs[e.value] != nil:
		out.output = e.value
	case strings.HasPrefix(e.value, "."), strings.HasPrefix(e.value, "$"), strings.HasPrefix(e.value, "{"):
		out.path, err = jsonpath.Parse(e.value)
	default:
		err = fmt.Errorf("the component %q has no output %q, and a JSON path must begin with a dot", e.component, e.value)
	}
	return out, err
}

// checkExportTemplate checks the components and outputs that the template of an export uses.
func (g *Graph) checkExportTemplate(component string, text *template.Template) error {
	faults := make([]error, len(text.Faults))
	for i, fault := range text.Faults {
		faults[i] = errors.New(fault)
	}
	for _, u := range text.Uses {
		if u.Component != component || u.Output != "" {
			u.Guarded = true // the value is only exported if the component is ready
			_, err := g.checkUse(-1, u, schema.GroupVersionKind{})
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// renderExports returns the exported values of all components that are ready. If a value does not exist yet, the result
// `waits` is a text that names the missing value. If a value is missing because its object is done and no longer
// exists, r.done contains the error.
func (r *run) renderExports(ctx context.Context, w *walkResult) (values map[string]json.RawMessage, waits string, err error) {
	values, r.done = map[string]json.RawMessage{}, map[string]error{}
	var errs []error
	for _, e := range r.graph.exports {
		if w.states[e.place].State != StateReady {
			continue
		}
		value, err := r.renderExport(ctx, e)
		switch {
		case errors.Is(err, readiness.ErrFinished):
			r.done[e.name] = err
		case errors.Is(err, jsonpath.ErrNotFound):
			waits = toLine(fmt.Sprintf("export %s: %v", e.name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("export %s: %w", e.name, err))
		case value != nil:
			values[e.name] = value
		}
	}
	return values, waits, errors.Join(errs...)
}

// renderExport returns one value as JSON, or nil if the component has no object for the item.
func (r *run) renderExport(ctx context.Context, e export) (raw json.RawMessage, err error) {
	defer recoverPanic(&err)
	node := r.nodes[e.place]
	node.isExport = true
	ctx = node.newContext(ctx)
	live, err := onlyObject(ctx, node.component)
	if err != nil && e.text == nil {
		return nil, err
	}
	if live == nil && err == nil {
		return nil, nil
	}
	var value any
	switch {
	case e.text != nil:
		var data *TemplateData
		if data, err = templateData(ctx, nil); err == nil {
			value, err = e.text.Render(ctx, data)
		}
	case e.output != "":
		value, err = readDeclaredOutput(ctx, node.component, e.output)
	default:
		value, err = findValue(ctx, live, e.path)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// updateExports writes the exports of an item unless they are known to be up to date. The exports of components that
// are not ready stay unchanged. If a value does not exist yet, the result `waits` is a text that names the missing
// value. If check is true, updateExports reads the export Secret, because another client may have changed it.
func (c *call) updateExports(ctx context.Context, walk *run, w *walkResult, check bool) (waits string, err error) {
	if len(c.graph.exports) == 0 || w.ended != nil {
		return "", nil
	}
	values, waits, err := walk.renderExports(ctx, w)
	if err != nil {
		return "", err
	}
	before := c.memory.Exports
	if before == nil {
		if before, err = c.readExports(ctx); err != nil {
			return "", err
		}
	}
	c.graph.keepExports(values, before, w)
	if err := keepDoneExports(values, before, walk.done); err != nil {
		return "", err
	}
	same := maps.EqualFunc(values, before, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if !same || check && len(values) > 0 || c.memory.Exports == nil && c.item.Status.ExportReference == nil && len(values) > 0 {
		if err := deployerlib.WriteExport(ctx, c.manager.GetSecretClient(), c.item, values); err != nil {
			return "", err
		}
	}
	c.memory.Exports = values
	return waits, nil
}

// keepExports copies exports from `before` to `values` if their components are not ready now.
func (g *Graph) keepExports(values, before map[string]json.RawMessage, w *walkResult) {
	for _, e := range g.exports {
		if old, found := before[e.name]; found && values[e.name] == nil && w.states[e.place].State != StateReady {
			values[e.name] = old
		}
	}
}

// keepDoneExports copies the exports of objects that have finished their work and are gone from `before` to `values`.
func keepDoneExports(values, before map[string]json.RawMessage, done map[string]error) error {
	for name, why := range done {
		if values[name] = before[name]; values[name] == nil {
			return deployerlib.NewConfigError("status.exportRef", "export %s: %s, and no earlier value is stored", name, why.Error())
		}
	}
	return nil
}

// readExports returns the values in the export Secret of the item. If there is no such Secret, or if its content cannot
// be parsed, the result is empty.
func (c *call) readExports(ctx context.Context) (map[string]json.RawMessage, error) {
	ref := c.item.Status.ExportReference
	if ref == nil {
		return map[string]json.RawMessage{}, nil
	}
	secret := &corev1.Secret{}
	err := c.manager.GetSecretClient().Get(ctx, types.NamespacedName{Namespace: c.item.Namespace, Name: ref.Name}, secret)
	if err != nil && !notfound.IsProof(err) {
		return nil, fmt.Errorf("read export Secret %s: %w", ref.Name, err)
	}
	values := map[string]json.RawMessage{}
	if err := yaml.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &values); err != nil {
		return map[string]json.RawMessage{}, nil //nolint:nilerr // content that cannot be read is replaced
	}
	return values, nil
}
