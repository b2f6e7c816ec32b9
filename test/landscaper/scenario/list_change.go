// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// app returns a blueprint with a single item of the manifest deployer.
func app(objects []object, options ...option) blueprint {
	return blueprint{imports: importsTarget("cluster"), items: []object{manifests("app", objects, options...)}}
}

func changeScenarios() []Scenario {
	return []Scenario{
		{
			Name: "an update changes, adds and prunes objects",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", app([]object{cm("kept", "a", "1"), cm("dropped", "b", "1")})), finishes("it", succeeded), remembered("v1", "ConfigMap", "kept"),
				installed("it", app([]object{cm("kept", "a", "2"), cm("added", "c", "1")})), finishes("it", succeeded),
				has("kept", "a", "2"), same("v1", "ConfigMap", "kept"), has("added", "c", "1"), absent("v1", "ConfigMap", "dropped"),
				uninstalled("it"), absent("v1", "ConfigMap", "kept"),
			},
		},
		{
			Name: "a reconciliation without a change",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")})), finishes("it", succeeded), remembered("v1", "ConfigMap", "app"),
				operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded),
				operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded),
				same("v1", "ConfigMap", "app"), uninstalled("it"),
			},
		},
		{
			Name: "updateOnChangeOnly skips a job without a change",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")}, onChangeOnly)), finishes("it", succeeded),
				editedByHand,
				operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded),
				installed("it", app([]object{cm("app", "a", "2")}, onChangeOnly)), finishes("it", succeeded), has("app", "a", "2"),
				uninstalled("it"),
			},
		},
		{
			Name: "an item that is removed takes its objects along",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", chain()), finishes("it", succeeded),
				installed("it", blueprint{imports: importsTarget("cluster"), items: []object{manifests("first", []object{cm("first", "a", "1")})}}),
				finishes("it", succeeded), absent("v1", "ConfigMap", "third"), has("first", "a", "1"),
				uninstalled("it"),
			},
		},
		{
			Name: "an object that moves to another item is not lost",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", twoItems([]object{cm("one"), cm("moved", "a", "1")}, []object{cm("two")})), finishes("it", succeeded),
				installed("it", twoItems([]object{cm("one")}, []object{cm("two")})), finishes("it", succeeded), absent("v1", "ConfigMap", "moved"),
				installed("it", twoItems([]object{cm("one")}, []object{cm("two"), cm("moved", "a", "1")})), finishes("it", succeeded), has("moved", "a", "1"),
				uninstalled("it"), absent("v1", "ConfigMap", "moved"),
			},
		},
		{
			Name: "a manifest is edited by hand and put right by the next job",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")})), finishes("it", succeeded),
				editedByHand,
				operated("it", lsv1alpha1.ReconcileOperation), finishes("it", succeeded), has("app", "a", "1"),
				uninstalled("it"),
			},
		},
		{
			Name: "two items share a Namespace",
			Steps: []Step{
				clusterTarget("cluster"),
				installed("it", twoItems([]object{namespace("shared"), cmIn("shared", "one")}, []object{namespace("shared"), cmIn("shared", "two")})),
				finishes("it", succeeded),
				installed("it", blueprint{imports: importsTarget("cluster"), items: []object{manifests("a", []object{namespace("shared"), cmIn("shared", "one")})}}),
				// A deployer that does not support shared objects may have deleted the Namespace. In that case, the
				// next job creates it again.
				operated("it", lsv1alpha1.ReconcileOperation),
				finishes("it", succeeded), uninstalled("it"),
			},
		},
		{
			Name: "deletion without uninstallation leaves the objects",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")})), finishes("it", succeeded),
				installed("it", app([]object{cm("app", "a", "1")}), func(in *lsv1alpha1.Installation) {
					metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")
				}),
				finishes("it", succeeded), uninstalled("it"), has("app", "a", "1"),
			},
		},
		{
			Name: "policy keep leaves the objects",
			Steps: []Step{
				clusterTarget("cluster"), installed("it", app([]object{cm("app", "a", "1")}, policy("keep"))), finishes("it", succeeded),
				uninstalled("it"), has("app", "a", "1"),
			},
		},
	}
}

// twoItems returns a blueprint with two items of the manifest deployer. The second item depends on the first item.
func twoItems(a, b []object) blueprint {
	return blueprint{imports: importsTarget("cluster"), items: []object{manifests("a", a), manifests("b", b, dependsOn("a"))}}
}

// namespace returns a Namespace. Its name begins with the name of the scenario's namespace.
func namespace(name string) object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": here + "-" + name}}
}

// cmIn returns a ConfigMap in the Namespace that namespace(ns) returns.
func cmIn(ns, name string) object {
	c := cm(name, "a", "1")
	c["metadata"] = object{"name": name, "namespace": here + "-" + ns}
	return c
}
