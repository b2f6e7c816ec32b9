// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// blueprint is an inline blueprint with its template files.
type blueprint struct {
	DeployExecutions []lsv1alpha1.TemplateExecutor `json:"deployExecutions"`
	ExportExecutions []lsv1alpha1.TemplateExecutor `json:"exportExecutions"`

	// Landscaper supports the following fields. Install does not.
	ImportExecutions          []any `json:"importExecutions"`
	Subinstallations          []any `json:"subinstallations"`
	SubinstallationExecutions []any `json:"subinstallationExecutions"`

	files map[string]string
}

// itemTemplate is one deploy item in the output of a deploy execution.
type itemTemplate struct {
	Name   string                    `json:"name"`
	Type   lsv1alpha1.DeployItemType `json:"type"`
	Target *struct {
		// A template sets either Import, which is the name of an import of the blueprint, or Name, which is the name of
		// a Target.
		Import string `json:"import"`
		Name   string `json:"name"`
	} `json:"target"`
	Labels             map[string]string     `json:"labels"`
	Config             *runtime.RawExtension `json:"config"`
	DependsOn          []string              `json:"dependsOn"`
	Timeout            *lsv1alpha1.Duration  `json:"timeout"`
	UpdateOnChangeOnly bool                  `json:"updateOnChangeOnly"`
}

// readBlueprint reads the blueprint of an Installation. It returns an error for features that Install does not support.
func readBlueprint(in *lsv1alpha1.Installation) (*blueprint, error) {
	if in.Spec.Blueprint.Inline == nil {
		return nil, fmt.Errorf("spec.blueprint: %w: a blueprint that is not inline", errUnsupported)
	}
	b := &blueprint{}
	if err := json.Unmarshal(in.Spec.Blueprint.Inline.Filesystem.RawMessage, &b.files); err != nil {
		return nil, fmt.Errorf("spec.blueprint.inline.filesystem: %w", err)
	}
	text, ok := b.files[lsv1alpha1.BlueprintFileName]
	if !ok {
		return nil, fmt.Errorf("spec.blueprint.inline.filesystem has no %s", lsv1alpha1.BlueprintFileName)
	}
	if err := yaml.Unmarshal([]byte(text), b); err != nil {
		return nil, fmt.Errorf("%s: %w", lsv1alpha1.BlueprintFileName, err)
	}
	if len(b.ImportExecutions)+len(b.Subinstallations)+len(b.SubinstallationExecutions) > 0 {
		return nil, fmt.Errorf("%s: %w: import executions and sub-installations", lsv1alpha1.BlueprintFileName, errUnsupported)
	}
	if len(in.Spec.ImportDataMappings)+len(in.Spec.ExportDataMappings)+len(in.Spec.Exports.Targets) > 0 {
		return nil, fmt.Errorf("spec: %w: data mappings and exports of Targets", errUnsupported)
	}
	return b, nil
}

// renderItems renders the deploy executions and returns their items.
func (b *blueprint) renderItems(values map[string]any) ([]itemTemplate, error) {
	var items []itemTemplate
	for _, execution := range b.DeployExecutions {
		var out struct {
			DeployItems []itemTemplate `json:"deployItems"`
		}
		if err := b.executeTemplate(execution, values, &out); err != nil {
			return nil, fmt.Errorf("deploy execution %s: %w", execution.Name, err)
		}
		items = append(items, out.DeployItems...)
	}
	return items, nil
}

// renderExports renders the export executions and returns the exported values.
func (b *blueprint) renderExports(values map[string]any) (map[string]json.RawMessage, error) {
	exports := map[string]json.RawMessage{}
	for _, execution := range b.ExportExecutions {
		var out struct {
			Exports map[string]json.RawMessage `json:"exports"`
		}
		if err := b.executeTemplate(execution, values, &out); err != nil {
			return nil, fmt.Errorf("export execution %s: %w", execution.Name, err)
		}
		maps.Copy(exports, out.Exports)
	}
	return exports, nil
}

// executeTemplate renders the template of an execution and decodes the result into `out`.
func (b *blueprint) executeTemplate(execution lsv1alpha1.TemplateExecutor, values map[string]any, out any) error {
	if execution.Type != lsv1alpha1.GOTemplateType {
		return fmt.Errorf("%w: the template type %q", errUnsupported, execution.Type)
	}
	var text string
	if execution.File == "" {
		if err := json.Unmarshal(execution.Template.RawMessage, &text); err != nil {
			return fmt.Errorf("template: %w", err)
		}
	} else {
		var ok bool
		if text, ok = b.files[strings.TrimPrefix(path.Clean(execution.File), "/")]; !ok {
			return fmt.Errorf("the blueprint has no file %s", execution.File)
		}
	}
	parsed, err := template.New(cmp.Or(execution.File, execution.Name)).Funcs(templateFunctions()).Parse(text)
	if err != nil {
		return err
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, values); err != nil {
		return err
	}
	if bytes.Contains(rendered.Bytes(), []byte("<no value>")) {
		return fmt.Errorf("the template uses a value that does not exist:\n%s", &rendered)
	}
	return yaml.Unmarshal(rendered.Bytes(), out)
}

// templateFunctions returns the functions that templates may call.
func templateFunctions() template.FuncMap {
	functions := sprig.HermeticTxtFuncMap()
	functions["toYaml"] = func(value any) (string, error) {
		out, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	return functions
}

// groupByDependency sorts names into groups so that each name depends only on names in earlier groups.
func groupByDependency(dependsOn map[string][]string) ([][]string, error) {
	var out [][]string
	done := map[string]bool{}
	for len(done) < len(dependsOn) {
		var wave []string
		for _, name := range slices.Sorted(maps.Keys(dependsOn)) {
			waits := slices.ContainsFunc(dependsOn[name], func(other string) bool { return !done[other] })
			if !done[name] && !waits {
				wave = append(wave, name)
			}
		}
		if wave == nil {
			return nil, fmt.Errorf("the dependencies of these deploy items contain a cycle or a name that does not exist: %v", dependsOn)
		}
		for _, name := range wave {
			done[name] = true
		}
		out = append(out, wave)
	}
	return out, nil
}
