// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"strings"
	"testing"
)

func TestTemplateUses(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // a part of the expected error, or "" for no error
	}{
		"a template that is defined in another file [Y26]":             {`{{template "labels" .}}`, ""},
		"a template that is defined in the same file [Y26]":            {`{{template "own" .}}{{define "own"}}{{end}}`, ""},
		"a template that is defined by a block [Y26]":                  {`{{block "own" .}}{{end}}`, ""},
		"a template that is not defined [Y28]":                         {"\n{{template \"absent\" .}}", `component "c": template: templates/x.yaml:2:11: "absent" is not defined`},
		"an undefined template in a branch that is rarely taken [Y28]": {`{{if .Config.x}}{{else}}{{range .Config.y}}{{with .}}{{template "absent"}}{{end}}{{end}}{{end}}`, `"absent" is not defined`},
		"an undefined template in another file [Y28]":                  {`{{template "broken" .}}`, `_labels.tpl:1:`},
		"an undefined template in a branch of a named template [Y28]":  {`{{define "own"}}{{if .}}{{template "absent"}}{{end}}{{end}}`, `"absent" is not defined`},
		"the hint at files that are not embedded":                      {`{{template "absent"}}`, `use all:templates`},
	} {
		t.Run(name, func(t *testing.T) {
			partial := `{{define "labels"}}{{end}}`
			if strings.Contains(tc.text, "broken") {
				partial = `{{define "broken"}}{{template "absent"}}{{end}}`
			}
			_, err := NewBuilder().Add("c", Template(newFiles(map[string]string{"x.yaml": tc.text, "_labels.tpl": partial}), "x.yaml")).Build()
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
