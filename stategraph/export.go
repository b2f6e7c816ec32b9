// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// export is a value that items export to Landscaper.
type export struct {
	name   string
	place  int            // of the component that it belongs to
	output string         // of WithOutput; or
	path   *jsonpath.Path // a field of the component's only object; or
	text   *template.Template
}

// exported is an export before it is checked.
type exported struct{ name, component, value string }

// Export exports a value under a name, for Landscaper's data exports. The value is written when the component is ready,
// written again when it changes, and deleted with the item. value is the name of an output that the component declares
// with WithOutput, or a JSON path such as ".metadata.name" into its only object, or, if it contains "{{", a template
// that renders a text. The template gets the same data as a Template, and may use the component itself and everything
// that it requires. A component that keeps no object for an item exports nothing. If a field does not exist yet, the
// item waits for it.
func (b *Builder) Export(name, component, value string) *Builder {
	b.exports = append(b.exports, exported{name: name, component: component, value: value})
	return b
}

// addExports checks the exports and adds them to the graph.
func (g *Graph) addExports(wanted []exported) []error {
	var faults []error
	names := map[string]bool{}
	for _, e := range wanted {
		place, found := g.index[e.component]
		switch {
		case e.name == "" || names[e.name]:
			faults = append(faults, fmt.Errorf("export %q: the name is empty or used twice", e.name))
			continue
		case !found:
			faults = append(faults, fmt.Errorf("export %q: there is no component %q%s", e.name, e.component,
				graph.Suggest(e.component, slices.Sorted(maps.Keys(g.index)))))
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

// parseExport parses where the value of an export comes from.
func (g *Graph) parseExport(place int, e exported) (export, error) {
	out := export{name: e.name, place: place}
	kept := declaredBy(g.nodes[place].resource)
	var err error
	switch {
	case strings.Contains(e.value, "{{"):
		if out.text, err = template.Parse("export", e.value); err != nil {
			return out, err
		}
		return out, g.checkExportText(e.component, out.text)
	case kept != nil && kept.outputs[e.value] != nil:
		out.output = e.value
	case strings.HasPrefix(e.value, "."), strings.HasPrefix(e.value, "$"), strings.HasPrefix(e.value, "{"):
		out.path, err = jsonpath.Parse(e.value)
	default:
		err = fmt.Errorf("the component %q has no output %q, and that is no JSON path, which begins with a dot", e.component, e.value)
	}
	return out, err
}

// checkExportText checks what the template of an export uses.
func (g *Graph) checkExportText(component string, text *template.Template) error {
	faults := make([]error, len(text.Faults))
	for i, fault := range text.Faults {
		faults[i] = errors.New(fault)
	}
	for _, u := range text.Uses {
		if u.Component != component || u.Output != "" {
			u.Guarded = true // the component is ready, or nothing is exported
			_, err := g.checkUse(-1, use{Use: u})
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// exportValues returns the exports of all components that are ready, and says which of them has to be waited for, and
// why.
func (r *run) exportValues(ctx context.Context, w *walked) (values map[string]json.RawMessage, waits string, err error) {
	values = map[string]json.RawMessage{}
	var errs []error
	for _, e := range r.graph.exports {
		if w.states[e.place].State != StateReady {
			continue
		}
		value, err := r.exportValue(ctx, e)
		switch {
		case errors.Is(err, jsonpath.ErrNotFound):
			waits = line(fmt.Sprintf("export %s: %v", e.name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("export %s: %w", e.name, err))
		case value != nil:
			values[e.name] = value
		}
	}
	return values, waits, errors.Join(errs...)
}

// exportValue returns one value as JSON, or nil if there is none.
func (r *run) exportValue(ctx context.Context, e export) (raw json.RawMessage, err error) {
	defer recovered(&err)
	node := r.nodes[e.place]
	node.exports = true
	ctx = node.with(ctx)
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
		value, err = exportText(ctx, e.text)
	case e.output != "":
		value, err = OutputOf(ctx, node.component, e.output)
	default:
		value, err = valueAt(ctx, live, e.path)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// exportText renders the template of an export.
func exportText(ctx context.Context, text *template.Template) (string, error) {
	data, err := templateData(ctx, nil)
	if err != nil {
		return "", err
	}
	return text.Text(ctx, data)
}

// export writes the exports of an item if they are not known to be up to date. Those of components that are not ready
// stay unchanged. It returns what is waited for.
func (c *call) export(ctx context.Context, walk *run, w *walked, thorough bool) (waits string, err error) {
	if len(c.graph.exports) == 0 || w.ended != nil {
		return "", nil
	}
	values, waits, err := walk.exportValues(ctx, w)
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
	same := maps.EqualFunc(values, before, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if !same || thorough && len(values) > 0 || c.memory.Exports == nil && c.item.Status.ExportReference == nil && len(values) > 0 {
		if err := deployerlib.WriteExport(ctx, c.keeper.Secrets(), c.item, values); err != nil {
			return "", err
		}
	}
	c.memory.Exports = values
	return waits, nil
}

// keepExports adds the earlier exports of components that are not ready.
func (g *Graph) keepExports(values, before map[string]json.RawMessage, w *walked) {
	for _, e := range g.exports {
		if old, found := before[e.name]; found && values[e.name] == nil && w.states[e.place].State != StateReady {
			values[e.name] = old
		}
	}
}

// readExports reads what an earlier process exported.
func (c *call) readExports(ctx context.Context) (map[string]json.RawMessage, error) {
	ref := c.item.Status.ExportReference
	if ref == nil {
		return map[string]json.RawMessage{}, nil
	}
	secret := &corev1.Secret{}
	err := c.keeper.Secrets().Get(ctx, types.NamespacedName{Namespace: c.item.Namespace, Name: ref.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read export Secret %s: %w", ref.Name, err)
	}
	values := map[string]json.RawMessage{}
	if err := yaml.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &values); err != nil {
		return map[string]json.RawMessage{}, nil //nolint:nilerr // whatever it is, it is written anew
	}
	return values, nil
}
