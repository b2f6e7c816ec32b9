// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// All returns the scenarios that every mock deployer and every manifest deployer must pass. The scenarios can run at
// the same time.
func All() []Scenario {
	var out []Scenario
	for _, list := range [][]Scenario{flowScenarios(), changeScenarios(), failureScenarios(), targetScenarios(), operationScenarios(), workloadScenarios()} {
		out = append(out, list...)
	}
	return out
}

// chain returns a blueprint with three items. Each item depends on the previous item.
func chain() blueprint {
	return blueprint{
		imports: importsTarget("cluster"),
		items: []object{
			manifests("first", []object{cm("first", "a", "1")}),
			mock("second", dependsOn("first")),
			manifests("third", []object{cm("third", "c", "3")}, dependsOn("second")),
		},
	}
}

func flowScenarios() []Scenario {
	return []Scenario{
		{
			Name: "install and uninstall",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", blueprint{imports: importsTarget("cluster"), items: []object{manifests("app", []object{cm("app", "a", "1")})}}),
				finishes("it", succeeded), has("app", "a", "1"),
				uninstalled("it"), absent("v1", "ConfigMap", "app"),
			},
		},
		{
			Name: "a chain of items runs in order and goes in reverse",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", chain()), finishes("it", succeeded),
				exists("v1", "ConfigMap", "third"), inOrder("first", "second", "third"),
				uninstalledInOrder("it", "third", "second", "first"), absent("v1", "ConfigMap", "first"),
			},
		},
		{
			Name: "exports of items reach another Installation",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("provider", blueprint{
					imports: importsTarget("cluster"),
					items: []object{
						mock("host", config("export", object{"host": "db.example.com"})),
						manifests("port", []object{cm("settings", "port", "5432")}, config("exports", object{"exports": []object{{
							"key": "port", "jsonPath": ".data.port",
							"fromResource": object{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": here},
						}}})),
					},
					exports: []string{"address"},
					// The exported values are grouped by item.
					exportOf: "exports:\n  address: {{ .deployitems.host.host }}:{{ .deployitems.port.port }}\n",
				}),
				finishes("provider", succeeded),
				installed("consumer", blueprint{
					imports:  append(importsTarget("cluster"), importsData("address")),
					template: asYAML(object{"deployItems": []object{manifests("app", []object{cm("app", "url", "{{ .imports.address }}")})}}),
				}),
				finishes("consumer", succeeded), has("app", "url", "db.example.com:5432"),
				uninstalled("consumer"), uninstalled("provider"), absent("v1", "ConfigMap", "settings"),
			},
		},
		{
			Name: "a changed export reaches its importer",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("provider", exporter("one")), finishes("provider", succeeded),
				installed("consumer", importer()), finishes("consumer", succeeded), has("app", "value", "one"),
				installed("provider", exporter("two")), finishes("provider", succeeded),
				operated("consumer", lsv1alpha1.ReconcileOperation), finishes("consumer", succeeded), has("app", "value", "two"),
				uninstalled("consumer"), uninstalled("provider"),
			},
		},
		{
			Name: "sub-installations pass data on",
			Steps: []Step{
				clusterTarget("cluster"), dataObject("base", "seed"), installed("it", nested()), finishes("it", succeeded),
				has("sub-one", "value", "seed"), has("sub-two", "value", "seed-x"),
				uninstalled("it"), absent("v1", "ConfigMap", "sub-one"), absent("v1", "ConfigMap", "sub-two"),
			},
		},
		{
			Name: "100 items",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", hundred()), finishes("it", succeeded),
				has("cm-99", "n", "99"), uninstalled("it"), absent("v1", "ConfigMap", "cm-99"),
			},
		},
	}
}

// exporter returns a blueprint that exports the value of a mock item.
func exporter(value string) blueprint {
	return blueprint{
		items:   []object{mock("value", config("export", object{"value": value}))},
		exports: []string{"value"}, exportOf: "exports:\n  value: {{ .deployitems.value.value }}\n",
	}
}

// importer returns a blueprint that deploys an imported value.
func importer() blueprint {
	return blueprint{
		imports:  append(importsTarget("cluster"), importsData("value")),
		template: asYAML(object{"deployItems": []object{manifests("app", []object{cm("app", "value", "{{ .imports.value }}")})}}),
	}
}

// nested returns a blueprint with two sub-installations. The second sub-installation imports the values that the first
// sub-installation exports.
func nested() blueprint {
	sub := func(name, in, out string) object {
		part := blueprint{
			imports:  append(importsTarget("cluster"), importsData("in")),
			template: asYAML(object{"deployItems": []object{manifests(name, []object{cm(name, "value", "{{ .imports.in }}")})}}),
			exports:  []string{"out"}, exportOf: "exports:\n  out: {{ .imports.in }}-x\n",
		}
		return object{
			"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "InstallationTemplate", "name": name,
			"blueprint": object{"filesystem": part.files()},
			"imports":   object{"targets": []object{{"name": "cluster", "target": "cluster"}}, "data": []object{{"name": "in", "dataRef": in}}},
			"exports":   object{"data": []object{{"name": "out", "dataRef": out}}},
		}
	}
	return blueprint{
		imports: append(importsTarget("cluster"), importsData("base")),
		subs:    []object{sub("sub-one", "base", "between"), sub("sub-two", "between", "last")},
	}
}

// hundred returns a blueprint with 50 items for each deployer.
func hundred() blueprint {
	b := blueprint{imports: importsTarget("cluster")}
	for i := range 50 {
		n := fmt.Sprint(50 + i)
		b.items = append(b.items, mock(fmt.Sprintf("mock-%d", i)), manifests("m-"+n, []object{cm("cm-"+n, "n", n)}))
	}
	return b
}

// inOrder requires that each item started after the previous item had finished.
func inOrder(names ...string) Step {
	return func(ctx context.Context, e *Env) error {
		var last metav1.Time
		for _, name := range names {
			di, err := e.item(ctx, name)
			if err != nil {
				return err
			}
			s := di.Status
			if s.TransitionTimes == nil || s.TransitionTimes.FinishedTime == nil || s.LastReconcileTime == nil {
				return fmt.Errorf("the status of item %s lacks times: %s", name, rawJSON(s))
			}
			if s.LastReconcileTime.Before(&last) {
				return fmt.Errorf("item %s started at %s, but the previous item finished at %s", name, s.LastReconcileTime, last)
			}
			last = *s.TransitionTimes.FinishedTime
		}
		return nil
	}
}

// uninstalledInOrder deletes an Installation and requires that its items are deleted one after the other.
func uninstalledInOrder(name string, items ...string) Step {
	return func(ctx context.Context, e *Env) error {
		if err := deleted(name)(ctx, e); err != nil {
			return err
		}
		return e.await(ctx, "the items go in order", func(ctx context.Context) error {
			list, err := e.Items(ctx)
			if err != nil {
				return err
			}
			return goneInOrder(list, items)
		})
	}
}

// goneInOrder returns an error until all items are gone. If items are deleted in the wrong order, it returns a
// finalError.
func goneInOrder(list []lsv1alpha1.DeployItem, order []string) error {
	there := map[string]bool{}
	for i := range list {
		there[list[i].Labels[lsv1alpha1.ExecutionManagedNameLabel]] = true
	}
	for i, item := range order[1:] {
		if there[order[i]] && !there[item] {
			return finalError{fmt.Errorf("item %s was deleted before item %s", item, order[i])}
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%d items are left", len(there))
	}
	return nil
}

// automatic makes Landscaper reconcile a successful Installation again and again.
func automatic(interval time.Duration) change {
	return func(in *lsv1alpha1.Installation) {
		in.Spec.AutomaticReconcile = &lsv1alpha1.AutomaticReconcile{
			SucceededReconcile: &lsv1alpha1.SucceededReconcile{Interval: &lsv1alpha1.Duration{Duration: interval}},
		}
	}
}
