// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// newFiles returns a file system with the given templates. The keys of the map are the file names.
func newFiles(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out["templates/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

const header = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

// renderTemplate walks a graph with one Template. It returns the first object that the template renders, and the state
// of the component.
func renderTemplate(t testing.TB, text, configuration string, opts ...Option) (map[string]any, string) {
	t.Helper()
	g, err := NewBuilder().Add("web", Template(newFiles(map[string]string{"x.yaml": text, "_names.tpl": `{{define "tail"}}-tail{{end}}`}), "x.yaml", opts...)).Build()
	if err != nil {
		return nil, err.Error()
	}
	c := newFakeSession()
	w := visitItem(t, g, newItemWithConfig("shop-item", configuration), c)
	for _, obj := range c.objects {
		if w.isReady() {
			return obj.Object, "ready"
		}
	}
	if w.isReady() {
		return nil, "ready"
	}
	return nil, w.err().Error()
}

func TestTemplate(t *testing.T) {
	data := WithData(func(context.Context) (any, error) { return map[string]int{"n": 7}, nil })
	for name, test := range map[string]struct {
		text, config string
		want         map[string]any // the field `data` of the object
	}{
		"values of the item [Y26]":          {"data: {a: '{{.Item.Name}} {{.Item.Namespace}} {{.Component}}'}", `{}`, map[string]any{"a": "shop-item shop web"}},
		"values of the configuration [Y26]": {"data: {a: '{{.Config.x.y}}'}", `{"x":{"y":3}}`, map[string]any{"a": "3"}},
		"functions of sprig [Y26]":          {"data: {a: {{upper .Config.a | quote}}, b: {{ .Config.none | default 1 }}}", `{"a":"b","none":""}`, map[string]any{"a": "B", "b": int64(1)}},
		"named templates in another file":   {`data: {a: 'x{{template "tail"}}'}`, `{}`, map[string]any{"a": "x-tail"}},
		"toYaml and nindent":                {"data: {{- toYaml .Config | nindent 2}}", `{"b":1,"a":[2]}`, map[string]any{"b": int64(1), "a": []any{int64(2)}}},
		"keys and values are sorted":        {"data: {a: '{{keys .Config | join \"\"}}{{values .Config | join \"\"}}'}", `{"c":1,"a":2,"b":3,"d":4,"e":5,"f":6}`, map[string]any{"a": "abcdef231456"}},
		"large numbers stay integers":       {"data: {a: {{.Config.n}}}", `{"n":12345678901}`, map[string]any{"a": int64(12345678901)}},
		"values of WithData":                {"data: {a: {{.Data.n}}}", `{}`, map[string]any{"a": int64(7)}},
	} {
		t.Run(name, func(t *testing.T) {
			obj, state := renderTemplate(t, header+test.text, test.config, data)
			if state != "ready" {
				t.Fatalf("state = %q, want ready", state)
			}
			if diff := cmp.Diff(test.want, obj["data"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("empty documents of a template are omitted [Y26]", func(t *testing.T) {
		text := "---\n" + header + "--- # next\n{{if false}}\nx: y\n{{end}}\n---\n# nothing\n---\napiVersion: apps/v1\nkind: Deployment\n"
		c := newFakeSession()
		g := mustBuild(t, NewBuilder().Add("web", Template(newFiles(map[string]string{"x.yaml": text}), "x.yaml")))
		visitItem(t, g, newItem("a"), c)
		if names := c.listNames(); len(names) != 2 || names[0] != "ConfigMap x" || !strings.HasPrefix(names[1], "Deployment web-") {
			t.Errorf("objects = %v, want ConfigMap x and Deployment web-…", names)
		}
	})
	t.Run("templates use names and objects of requirements", func(t *testing.T) {
		c := newFakeSession()
		text := header + "data: {a: '{{.NameOf \"config\"}} {{(.Output \"config\").metadata.namespace}} {{.Value \"word\"}}'}"
		word := newExternal(func(ctx context.Context) error { return SetOutput(ctx, "hi") })
		g := mustBuild(t, NewBuilder().Add("config", Object(newStatefulSet)).Add("word", word).Add("web", Template(newFiles(map[string]string{"x.yaml": text}), "x.yaml"), "config", "word"))
		w := visitItem(t, g, newItemWithConfig("a", `{"Replicas":1}`), c)
		for ref, obj := range c.objects {
			if got, _, _ := unstructured.NestedString(obj.Object, "data", "a"); ref.Kind == "ConfigMap" && got != "db default hi" {
				t.Errorf("data.a = %q, want %q", got, "db default hi")
			}
		}
		if !w.isReady() {
			t.Error(w.err())
		}
	})
}

func TestTemplateErrors(t *testing.T) {
	in := "build state graph: component \"web\": "
	for name, test := range map[string]struct{ text, config, want string }{
		"a missing value [Y28]":                     {header + "data:\n  a: {{.Config.size}}", `{}`, `component web: template: templates/x.yaml:5:14: executing "templates/x.yaml" at <.Config.size>: map has no entry for key "size"`},
		"a missing nested value [Y28]":              {header + "\n{{.Config.a.b.c}}", `{"a":{}}`, `component web: template: templates/x.yaml:5:9: executing "templates/x.yaml" at <.Config.a.b.c>: map has no entry for key "b"`},
		"a value of a missing configuration [Y28]":  {header + "{{.Config.a}}", ``, `component web: template: templates/x.yaml:4:9: executing "templates/x.yaml" at <.Config.a>: map has no entry for key "a"`},
		"a field that templates do not have":        {header + "{{.Secret}}", `{}`, `component web: template: templates/x.yaml:4:2: executing "templates/x.yaml" at <.Secret>: can't evaluate field Secret in type *stategraph.TemplateData`},
		"a template with a syntax error":            {header + "{{if}}", `{}`, in + `template: templates/x.yaml:4: missing value for if`},
		"an unknown function [Y28]":                 {"{{now}}", `{}`, in + `template: templates/x.yaml:1: function "now" not defined`},
		"a result that is not YAML":                 {header + "---\na: b\nc: d: e", `{}`, `component web: template: templates/x.yaml: document 2, line 6 of the rendered text: mapping values are not allowed in this context`},
		"a value that is taken for an alias":        {header + "a: {{.Config.a}}", `{"a":"*k4n4ry"}`, `component web: template: templates/x.yaml: document 1, line 1 of the rendered text: yaml: unknown anchor … referenced`},
		"a value that is taken for a key":           {header + "? {{.Config.a}}\n: b", `{"a":"{k4n4ry: 1}"}`, `component web: template: templates/x.yaml: document 1, line 1 of the rendered text: yaml: invalid map key: …`},
		"a value with another tag":                  {header + "a: !!int {{.Config.a}}", `{"a":"k4n4ry"}`, `component web: template: templates/x.yaml: document 1, line 1 of the rendered text: yaml: cannot decode !!str … as a !!int`},
		"a value that is not a list":                {header + "{{range .Config.a}}{{end}}", `{"a":true}`, `component web: template: templates/x.yaml:4:15: executing "templates/x.yaml" at <.Config.a>: range can't iterate over it`},
		"a key that occurs twice":                   {header + "kind: X", `{}`, `component web: template: templates/x.yaml: document 1, line 4 of the rendered text: key "kind" already set in map`},
		"a result that is not an object":            {"- password", `{}`, `component web: template: templates/x.yaml: document 1, line 1 of the rendered text: it is not an object`},
		"a configuration that is not an object":     {header, `[]`, `component web: decode spec.config: json: cannot unmarshal array into Go value of type map[string]interface {}`},
		"a result that exceeds the size of an item": {`{{range until 60000}}0123456789012345678901234567890123456789{{end}}`, `{}`, `component web: template: templates/x.yaml:1:23: executing "templates/x.yaml" at <…: the result is longer than 1048576 bytes`},
		"a number above the limit":                  {`{{repeat .Config.n "x"}}`, `{"n":99999999}`, `component web: template: templates/x.yaml:1:2: executing "templates/x.yaml" at <repeat .Config.n "x">: error calling repeat: repeat 99999999 times: want at most 65536 characters in total`},
		"a list above the limit":                    {`{{untilStep 0 99999999 1}}`, `{}`, `component web: template: templates/x.yaml:1:2: executing "templates/x.yaml" at <untilStep 0 99999999 1>: error calling untilStep: count from 0 to 99999999: more than 65536 numbers`},
		"fail":                                      {`{{fail "no"}}`, `{}`, `component web: template: templates/x.yaml:1:2: executing "templates/x.yaml" at <fail "no">: error calling fail: no`},
		"required":                                  {`{{required "size is missing" .Config.size}}`, `{"size":""}`, `component web: template: templates/x.yaml:1:2: executing "templates/x.yaml" at <required "size is missing" .Config.size>: error calling required: size is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			_, state := renderTemplate(t, test.text, test.config)
			if _, tail, cut := strings.Cut(test.want, "…"); cut {
				if !strings.HasSuffix(state, tail) {
					t.Errorf("state = %q, want the suffix %q", state, tail)
				}
				return
			}
			if diff := cmp.Diff(test.want, state); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("a missing file is found when the graph is built [Y27, Y28]", func(t *testing.T) {
		_, err := NewBuilder().Add("web", Template(newFiles(nil), "x.yaml")).Build()
		want := in + "template templates/x.yaml: open templates/x.yaml: file does not exist"
		if err == nil || err.Error() != want {
			t.Error(err)
		}
		if _, err := NewBuilder().Add("web", Template(nil, "x.yaml")).Build(); err == nil || !strings.Contains(err.Error(), "the file system is nil") {
			t.Error(err)
		}
	})
	t.Run("an error of the function of WithData is returned", func(t *testing.T) {
		if _, state := renderTemplate(t, header, `{}`, WithData(func(context.Context) (any, error) { return nil, errors.New("no") })); state != "component web: no" {
			t.Errorf("state = %q, want the error of the function", state)
		}
		if _, state := renderTemplate(t, header, `{}`, WithData(nil)); !strings.Contains(state, "WithData: the function is nil") {
			t.Errorf("state = %q, want an error about the function", state)
		}
	})
}

// TestTemplateFunctionsLimitTheirResult checks functions whose result can be much larger than their arguments. If the
// result would exceed the limit, they must return an error.
func TestTemplateFunctionsLimitTheirResult(t *testing.T) {
	long := strings.Repeat("a ", 20_000)
	config := `{"text":"` + long + `","list":["` + strings.Join(strings.Fields(long), `","`) + `"]}`
	for call, want := range map[string]string{
		`join .Config.text .Config.list`:                           "join",
		`replace " " .Config.text .Config.text`:                    "replace",
		`replace "" .Config.text .Config.text`:                     "replace",
		`wrapWith 1 .Config.text .Config.text`:                     "wrapWith",
		`regexReplaceAll "a" .Config.text .Config.text`:            "replace matches",
		`regexReplaceAll ".*" .Config.text (repeat 1000 "$0")`:     "replace matches",
		`mustRegexReplaceAll "a" .Config.text .Config.text`:        "replace matches",
		`regexReplaceAllLiteral "a" .Config.text .Config.text`:     "replace matches",
		`mustRegexReplaceAllLiteral "a" .Config.text .Config.text`: "replace matches",
		`indent 256 (join "\n" .Config.list)`:                      "indent",
		`nindent 256 (join "\n" .Config.list)`:                     "indent",
	} {
		t.Run(call, func(t *testing.T) {
			_, state := renderTemplate(t, header+"data:\n  a: {{"+call+"}}", config)
			if !strings.HasSuffix(state, want+": want at most 1048576 characters in total") {
				t.Error(state[max(0, len(state)-200):])
			}
		})
	}
	t.Run("an invalid regular expression is an error", func(t *testing.T) {
		if _, state := renderTemplate(t, header+`data: {a: {{regexReplaceAll "(" "a" "b"}}}`, `{}`); !strings.Contains(state, "error parsing regexp: missing closing )") {
			t.Errorf("state = %q, want an error about the expression", state)
		}
	})
}

// FuzzTemplate renders any template with any configuration. Rendering must not panic, and must end within a time limit.
// It must return objects of a limited size, or an error with the location. The same input must always have the same
// result.
func FuzzTemplate(f *testing.F) {
	f.Add(header+"data: {a: '{{.Config.a}}'}", `{"a":1}`)
	f.Add("{{range $k, $v := .Config}}---\na: {{$v | toYaml | nindent 3}}\n{{end}}", `{"a":{"b":[1,null]}}`)
	f.Add(`{{substr -1 9 .Item.Name}}{{.Config | toJson | fromJson | get "a"}}{{slice (list 1 2) 5}}`, `null`)
	f.Add(`{{.Output "x"}}{{.NameOf ""}}{{.Value "web"}}{{index .Config "a" 1 2}}{{dig "a" "b" 1 .Config}}`, `{"a":"b"}`)
	f.Add("---\n---\n- a\n--- x\n\t&a [*a]", `[]`)
	f.Add(`{{define "a"}}{{end}}{{template "a" .}}{{include "a"}}{{indent -1 "x"}}{{repeat -1 "x"}}{{wrap 0 "a b"}}{{div 1 0}}`, `{}`)
	f.Add(`a: {{repeat .Config.a "x"}}{{until .Config.a | len}}{{printf "%*d" .Config.a 1}}{{indent .Config.a "x"}}`, `{"a":65536}`)
	f.Add(`a: {{.Config.s | replace "a" .Config.s | replace "a" .Config.s}}{{join .Config.s (until 9)}}{{wrapWith 1 .Config.s .Config.s}}`, `{"s":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`)
	f.Add("a: &a [1]\nb: &b [*a,*a]\nc: [*b,*b]\n{{fromYaml .Config.y}}", `{"y":"a: &a [1,2]\nb: [*a,*a]"}`)
	kinds := WithKinds(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	f.Fuzz(func(t *testing.T, text, configuration string) {
		if strings.Contains(text, "range") || strings.Contains(text, "template") {
			text = strings.Map(func(r rune) rune { // limits loops and removes recursion, which could take any time
				if r >= '0' && r <= '9' {
					return '1'
				}
				return r
			}, strings.ReplaceAll(text, "template", ""))
		}
		if len(text) > 1<<10 || len(configuration) > 1<<10 {
			return
		}
		g, err := NewBuilder().Add("web", Template(newFiles(map[string]string{"x.yaml": text}), "x.yaml", kinds)).Build()
		if err != nil {
			return
		}
		began, first := time.Now(), newFakeSession()
		fault := renderOnce(t, g, configuration, first)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
		second := newFakeSession()
		if again := renderOnce(t, g, configuration, second); again != fault || !reflect.DeepEqual(first.objects, second.objects) {
			t.Errorf("first %q %v\nthen %q %v", fault, first.objects, again, second.objects)
		}
	})
}

// renderOnce renders the templates of the graph once. It checks the error and the size of the objects, and returns the
// text of the error.
func renderOnce(t *testing.T, g *Graph, configuration string, c *fakeSession) string {
	t.Helper()
	err := visitItem(t, g, newItemWithConfig("a", configuration), c).err()
	size := 0
	for _, obj := range c.objects {
		raw, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		size += len(raw)
	}
	if size > 8*template.MaxText { // a character that takes one byte in YAML may take six bytes in JSON
		t.Errorf("%d bytes", size)
	}
	if err == nil {
		return ""
	}
	if strings.Contains(err.Error(), "panic:") || !strings.HasPrefix(err.Error(), "component web: ") {
		t.Fatal(err)
	}
	return err.Error()
}
