// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

func targetScenarios() []Scenario {
	plain := app([]object{cm("app", "a", "1")})
	return []Scenario{
		{
			Name: "a Target in a Secret",
			Steps: []Step{
				secretTarget("cluster"), installed("it", plain), finishes("it", succeeded), has("app", "a", "1"), uninstalled("it"),
			},
		},
		{
			Name: "a list of Targets",
			Steps: []Step{
				clusterTarget("blue"), clusterTarget("green"),
				installed("it", blueprint{
					imports: []object{{"name": "clusters", "type": "targetList", "targetType": clusterType}},
					template: `deployItems:
{{ range $i, $target := .imports.clusters }}
- name: app-{{ $i }}
  type: ` + manifestType + `
  target: {import: clusters, index: {{ $i }}}
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    manifests:
    - {policy: manage, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: "app-{{ $i }}", namespace: ` + here + `}}}
{{ end }}`,
				}, func(in *lsv1alpha1.Installation) {
					in.Spec.Imports.Targets = []lsv1alpha1.TargetImport{{Name: "clusters", Targets: []string{"blue", "green"}}}
				}),
				finishes("it", succeeded), exists("v1", "ConfigMap", "app-0"), exists("v1", "ConfigMap", "app-1"), uninstalled("it"),
			},
		},
		{
			Name: "a map of Targets",
			Steps: []Step{
				clusterTarget("blue"), clusterTarget("green"),
				installed("it", blueprint{
					imports: []object{{"name": "clusters", "type": "targetMap", "targetType": clusterType}},
					items: []object{
						manifests("one", []object{cm("one")}, target(object{"import": "clusters", "key": "b"})),
						manifests("two", []object{cm("two")}, target(object{"import": "clusters", "key": "g"})),
					},
				}, func(in *lsv1alpha1.Installation) {
					in.Spec.Imports.Targets = []lsv1alpha1.TargetImport{{Name: "clusters", TargetMap: map[string]string{"b": "blue", "g": "green"}}}
				}),
				finishes("it", succeeded), exists("v1", "ConfigMap", "one"), exists("v1", "ConfigMap", "two"), uninstalled("it"),
			},
		},
		{
			Name: "an item that names no Target",
			Steps: []Step{
				installed("it", blueprint{items: []object{manifests("app", []object{cm("app")}, timeout("6s"), target(nil), without("target"))}}),
				finishes("it", failed),
				clusterTarget("cluster"), installed("it", plain), finishes("it", succeeded), has("app", "a", "1"), uninstalled("it"),
			},
		},
		{
			Name: "a Target that is missing fails, and comes later",
			Steps: []Step{
				installed("it", plain), finishes("it", failed),
				clusterTarget("cluster"), operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded), uninstalled("it"),
			},
		},
		{
			Name: "the configuration of a Target changes",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", plain), finishes("it", succeeded), remembered("v1", "ConfigMap", "app"),
				secretTarget("other"), installed("it", plain, bound("other")), finishes("it", succeeded), same("v1", "ConfigMap", "app"),
				uninstalled("it"), absent("v1", "ConfigMap", "app"),
			},
		},
		{
			Name: "deletion without the Target fails, and succeeds when it is back", Waits: true,
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")}, timeout("40s"))), finishes("it", succeeded),
				removeObject(&lsv1alpha1.Target{}, "cluster"),
				deleted("it"), finishes("it", deleteFailed),
				clusterTarget("cluster"), operated("it", lsv1alpha1.ReconcileOperation), goneInstallation("it"), absent("v1", "ConfigMap", "app"),
			},
		},
		{
			Name: "an Installation with a Context of its own",
			Steps: []Step{
				clusterTarget("cluster"), newContext("own"),
				installed("it", plain, inContext("own")), finishes("it", succeeded), uninstalled("it"),
			},
		},
		{
			Name: "a Context that is missing fails, and comes later",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", plain, inContext("own")), finishes("it", failed),
				newContext("own"), installed("it", plain, inContext("own")), finishes("it", succeeded), uninstalled("it"),
			},
		},
	}
}

// The function `without` returns an option that removes a field of a deploy item.
func without(field string) option { return func(item object) { delete(item, field) } }

// bound binds the import "cluster" to another Target.
func bound(name string) change {
	return func(in *lsv1alpha1.Installation) { in.Spec.Imports.Targets[0].Target = name }
}
