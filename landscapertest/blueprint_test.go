// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
)

// withBlueprint returns an Installation with an inline blueprint that consists of the given files.
func withBlueprint(t *testing.T, files map[string]string) *lsv1alpha1.Installation {
	t.Helper()
	raw, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	in := &lsv1alpha1.Installation{}
	in.Spec.Blueprint.Inline = &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON(raw)}
	return in
}

func TestReadBlueprint(t *testing.T) {
	for name, tc := range map[string]struct {
		blueprint, want string
		change          func(*lsv1alpha1.Installation)
	}{
		"a blueprint in a registry": {
			want: "not supported by landscapertest", change: func(in *lsv1alpha1.Installation) { in.Spec.Blueprint.Inline = nil },
		},
		"sub-installations":                  {blueprint: "subinstallations: [{file: /a.yaml}]", want: errUnsupported.Error()},
		"a blueprint with import executions": {blueprint: "importExecutions: [{name: a}]", want: errUnsupported.Error()},
		"a blueprint that is not YAML":       {blueprint: "a: [", want: "blueprint.yaml: "},
		"a blueprint that exports Targets":   {want: "not supported by landscapertest", change: func(in *lsv1alpha1.Installation) { in.Spec.Exports.Targets = make([]lsv1alpha1.TargetExport, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			in := withBlueprint(t, map[string]string{"blueprint.yaml": tc.blueprint})
			if tc.change != nil {
				tc.change(in)
			}
			if _, err := readBlueprint(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("readBlueprint() = %v, want an error with %q", err, tc.want)
			}
		})
	}
	if _, err := readBlueprint(withBlueprint(t, nil)); err == nil || !strings.Contains(err.Error(), "has no blueprint.yaml") {
		t.Errorf("readBlueprint() without files = %v", err)
	}
}

func TestBlueprintRenders(t *testing.T) {
	b, err := readBlueprint(withBlueprint(t, map[string]string{
		"blueprint.yaml": `
deployExecutions: [{name: a, type: GoTemplate, file: /a.yaml}, {name: b, type: GoTemplate, template: "deployItems: [{name: b, type: t}]"}]
exportExecutions: [{name: e, type: GoTemplate, file: e.yaml}]`,
		"a.yaml": "deployItems: [{name: {{ .imports.name | quote }}, type: t, dependsOn: [b], timeout: 1m}]",
		"e.yaml": "exports: {host: {{ .deployitems.b.host | quote }}}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	items, err := b.renderItems(map[string]any{"imports": map[string]any{"name": "first"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name+" after "+strings.Join(item.DependsOn, ","))
	}
	if diff := cmp.Diff([]string{"first after b", "b after "}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	exports, err := b.renderExports(map[string]any{"deployitems": map[string]any{"b": map[string]any{"host": "h"}}})
	if err != nil || string(exports["host"]) != `"h"` {
		t.Errorf("exports() = %s, %v", exports, err)
	}
	if _, err := b.renderItems(map[string]any{"imports": map[string]any{}}); err != nil {
		t.Errorf("got error %v for a quoted empty value", err)
	}
}

func TestBlueprintRejectsTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ execution, want string }{
		"a template of another type":            {"{name: a, type: Spiff, file: /a.yaml}", errUnsupported.Error()},
		"a template with a missing file":        {"{name: a, type: GoTemplate, file: /b.yaml}", "no file /b.yaml"},
		"a deploy execution without a template": {"{name: a, type: GoTemplate, template: {a: b}}", "template: "},
		"a template with a missing value":       {"{name: a, type: GoTemplate, file: /a.yaml}", "a value that does not exist"},
		"a template with a syntax error":        {`{name: a, type: GoTemplate, template: "{{"}`, "deploy execution a: "},
		"a template with an unknown field":      {`{name: a, type: GoTemplate, template: "{{ .a.b.c }}"}`, "deploy execution a: "},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := readBlueprint(withBlueprint(t, map[string]string{
				"blueprint.yaml": "deployExecutions: [" + tc.execution + "]", "a.yaml": "deployItems: [{name: {{ .imports.a }}}]",
			}))
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.renderItems(map[string]any{"imports": map[string]any{}, "a": "text"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("items() = %v, want an error with %q", err, tc.want)
			}
			if tc.want == errUnsupported.Error() && !errors.Is(err, errUnsupported) {
				t.Errorf("%v is not errUnsupported", err)
			}
		})
	}
}

func TestGroupByDependency(t *testing.T) {
	got, err := groupByDependency(map[string][]string{"d": {"b", "c"}, "b": {"a"}, "c": {"a"}, "a": nil})
	if diff := cmp.Diff([][]string{{"a"}, {"b", "c"}, {"d"}}, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	for _, bad := range []map[string][]string{{"a": {"b"}, "b": {"a"}}, {"a": {"missing"}}} {
		if got, err := groupByDependency(bad); err == nil {
			t.Errorf("waves(%v) = %v, want an error", bad, got)
		}
	}
}
