// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noConfigMap is a function for Object that returns no object.
func noConfigMap(context.Context) (*corev1.ConfigMap, error) { return nil, nil }

func TestInferredRequirements(t *testing.T) {
	for name, text := range map[string]string{
		"NameOf [F39] [F41]":                                  `{{ .NameOf "service" }}`,
		"NameOf of the outermost dot [F41]":                   `{{ range .Config.list }}{{ $.NameOf "service" }}{{ end }}`,
		"NameOf at the end of a pipeline [F41]":               `{{ "service" | .NameOf | quote }}`,
		"Output with fields [F41]":                            `{{ (.Output "service").metadata.name }}`,
		"Output with the name of an output [F41]":             `{{ .Output "service" "address" }}`,
		"Value [F41]":                                         `{{ .Value "service" }}`,
		"NameOf in the condition of a branch [F41]":           `{{ if .NameOf "service" }}a{{ end }}`,
		"NameOf as an argument of a function [F41]":           `{{ printf "%s-%s" (.NameOf "service") .Item.Name }}`,
		"NameOf in a named template [F41]":                    `{{ template "labels" . }}`,
		"NameOf in a branch that is rarely taken [F39] [F41]": `{{ if false }}{{ else }}{{ with .Config.x }}{{ $.NameOf "service" }}{{ end }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(map[string]string{"x.yaml": header + "data:\n  a: " + text, "_l.tpl": `{{ define "labels" }}{{ .NameOf "service" }}{{ end }}`})
			g := mustBuild(t, NewBuilder().Add("web", Template(f, "x.yaml")).Add("service", Object(newUnnamedConfigMap, WithOutput("address", ".data.address"))))
			if diff := cmp.Diff([]string{"service"}, g.Requires("web")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("typed references of Go functions [F41]", func(t *testing.T) {
		config := Require[*corev1.ConfigMap]("config")
		body := func(ctx context.Context) (*corev1.ConfigMap, error) {
			live, err := config.Get(ctx)
			if err != nil {
				return nil, err
			}
			name, err := config.Name(ctx)
			return newConfigMap("web", map[string]string{"saw": live.Name, "name": name}), err
		}
		g := mustBuild(t, NewBuilder().Add("web", Object(body, Uses(config))).Add("config", Object(newUnnamedConfigMap)))
		c := newFakeSession()
		if w := visitItem(t, g, newItem("i"), c); !w.isReady() {
			t.Fatal(w.err())
		}
		if diff := cmp.Diff([]string{"config", "web"}, g.Order()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestInvalidReferences(t *testing.T) {
	web := func(text string) Resource {
		return Template(newFiles(map[string]string{"x.yaml": header + text}), "x.yaml")
	}
	for name, test := range map[string]struct {
		graph *Builder
		want  []string
	}{
		"a component that does not exist [F39]": {
			NewBuilder().Add("service", Object(newUnnamedConfigMap)).Add("web", web(`{{ .NameOf "servce" }}`)),
			[]string{`component "web": template: templates/x.yaml:4:3: NameOf: there is no component "servce" (did you mean "service"?)`},
		},
		"several invalid references [F39]": {
			NewBuilder().Add("web", web(`{{ .NameOf "one" }}{{ (.Output "two").x }}`)).Add("other", web(`{{ .Value "three" }}{{ template "none" }}`)),
			[]string{`no component "one"`, `no component "two"`, `no component "three"`, `"none" is not defined`},
		},
		"a reference of a component to itself [F39]": {NewBuilder().Add("web", web(`{{ .NameOf "web" }}`)), []string{"a component cannot use itself"}},
		"an output that is not declared [F39]": {
			NewBuilder().Add("service", Object(newUnnamedConfigMap, WithOutput("host", ".a"))).Add("web", web(`{{ .Output "service" "hots" }}`)),
			[]string{`the component "service" has no output "hots" (did you mean "host"?)`},
		},
		"a component that may have no object, without a condition [F39]": {
			NewBuilder().Add("tls", Object(noConfigMap, Optional())).Add("web", web(`{{ .NameOf "tls" }}`)),
			[]string{`the component "tls" has no object for some items`},
		},
		"a template that may render no object, without a condition [F39]": {
			NewBuilder().Add("tls", web("")).Add("maybe", Template(newFiles(map[string]string{"x.yaml": "# c\n{{ if .Config.x }}\n" + header + "{{ end }}\n---\n"}), "x.yaml")).
				Add("web", web(`{{ .NameOf "tls" }}{{ .NameOf "maybe" }}`)),
			[]string{`the component "maybe" has no object for some items`},
		},
		"a cycle of references [F41]": {
			NewBuilder().Add("a", web(`{{ .NameOf "b" }}`)).Add("b", web(`{{ .NameOf "a" }}`)), []string{"a → b → a"},
		},
		"a typed reference to another kind [F39]": {
			NewBuilder().Add("db", Object(newStatefulSet)).Add("web", Object(newUnnamedConfigMap, Uses(Require[*corev1.Service]("db")))),
			[]string{`Uses: the component "db" has no Service`},
		},
		"a typed reference to nothing [F39]": {
			NewBuilder().Add("web", Object(newUnnamedConfigMap, Uses(Require[*appsv1.StatefulSet]("db")))), []string{`Uses: there is no component "db"`},
		},
		"an output whose path is wrong [F39]": {
			NewBuilder().Add("db", Object(newStatefulSet, WithOutput("host", "{.a"), WithOutput("", ".a"))), []string{`output "host"`, `output ""`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.graph.Build()
			if err == nil {
				t.Fatal("it builds")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
		})
	}
}

func TestOptionalComponent(t *testing.T) {
	for name, text := range map[string]string{
		"default of NameOf [F39]":            `'{{ .NameOf "tls" | default "none" }}'`,
		"default with NameOf as an argument": `'{{ default "none" (.NameOf "tls") }}'`,
		"if block of NameOf [F39]":           `'{{ if .NameOf "tls" }}{{ .NameOf "tls" }}{{ else }}none{{ end }}'`,
		"with block of NameOf [F39]":         `'{{ with .NameOf "tls" }}{{ . }}{{ else }}none{{ end }}'`,
		"if block of Output":                 `'{{ if .Output "tls" }}{{ (.Output "tls").metadata.name }}{{ else }}none{{ end }}'`,
		"default of a named output":          `'{{ .Output "tls" "key" | default "none" }}'`,
		"requirement of an else branch":      `'{{ with .NameOf "tls" }}{{ . }}{{ end }}{{ with .NameOf "web" }}none{{ end }}'`,
	} {
		t.Run(name, func(t *testing.T) {
			tls := Object(noConfigMap, Optional(), WithOutput("key", ".data.key"))
			g := mustBuild(t, NewBuilder().Add("tls", tls).Add("web", Object(newUnnamedConfigMap)).
				Add("page", Template(newFiles(map[string]string{"x.yaml": header + "data: {a: " + text + "}"}), "x.yaml")))
			c := newFakeSession()
			if w := visitItem(t, g, newItem("i"), c); !w.isReady() {
				t.Fatal(w.err())
			}
			for ref, obj := range c.objects {
				if got, _, _ := unstructured.NestedString(obj.Object, "data", "a"); ref.Name == "x" && got != "none" {
					t.Errorf("data.a = %q, want none", got)
				}
			}
		})
	}
}

func TestNamedOutput(t *testing.T) {
	t.Run("a named output is the value of a field [F41]", func(t *testing.T) {
		text := header + `data: {a: '{{ .Output "db" "replicas" }}'}`
		g := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet, WithOutput("replicas", ".spec.replicas"))).
			Add("web", Template(newFiles(map[string]string{"x.yaml": text}), "x.yaml")))
		c := newFakeSession()
		if w := visitItem(t, g, newItemWithConfig("i", `{"Replicas":3}`), c); !w.isReady() {
			t.Fatal(w.err())
		}
		for ref, obj := range c.objects {
			if got, _, _ := unstructured.NestedString(obj.Object, "data", "a"); ref.Name == "x" && got != "3" {
				t.Errorf("data.a = %q, want 3", got)
			}
		}
	})
	t.Run("a missing field of a named output is an error of the component that uses it [F41]", func(t *testing.T) {
		text := header + `data: {a: '{{ .Output "db" "none" }}'}`
		g := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet, WithOutput("none", ".spec.none"))).
			Add("web", Template(newFiles(map[string]string{"x.yaml": text}), "x.yaml")))
		w := visitItem(t, g, newItemWithConfig("i", `{"Replicas":3}`), newFakeSession())
		if w.errs[1] == nil || !strings.Contains(w.errs[1].Error(), `output "none" of db`) {
			t.Errorf("errors = %v, want one about the output none", w.errs)
		}
	})
}

// widget is a custom kind whose status contains no field that the default readiness rules use.
type widget struct {
	corev1.ConfigMap

	Status struct{ Phase string }
}

func TestStatusOfGoTypes(t *testing.T) {
	body := func(context.Context) (*widget, error) { return &widget{}, nil }
	t.Run("a status with unknown fields needs a custom check [F35]", func(t *testing.T) {
		if _, err := NewBuilder().Add("a", Object(body)).Build(); err == nil || !strings.Contains(err.Error(), "use ReadyWhen") {
			t.Error(err)
		}
	})
	t.Run("a custom check determines the readiness [F35]", func(t *testing.T) {
		ready := ReadyWhen(func(live *widget) (Readiness, error) { return ReadyIf(live.Status.Phase == "Done", "at work"), nil })
		mustBuild(t, NewBuilder().Add("a", Object(body, ready)).Add("b", Object(body, ReadyOnceApplied())))
	})
}
