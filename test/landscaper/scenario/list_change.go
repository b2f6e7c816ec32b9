// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// listUpdateScenarios returns the scenarios about further jobs of an Installation.
func listUpdateScenarios() []Scenario {
	return []Scenario{
		{
			Name: "an update changes, adds and prunes objects",
			Steps: []steps.Step{
				createTarget("cluster"),
				install("it", newBlueprint(newManifestItem("app", []object{newConfigMap("kept", "a", "1"), newConfigMap("dropped", "b", "1")}))),
				storeUID("ConfigMap", "kept"),
				install("it", newBlueprint(newManifestItem("app", []object{newConfigMap("kept", "a", "2"), newConfigMap("added", "c", "1")}))),
				expectValue("kept", "a", "2"), requireSame("ConfigMap", "kept"), expectValue("added", "c", "1"), expectNoObject("ConfigMap", "dropped"),
				deleteAndWait("it"), expectNoObject("ConfigMap", "kept"),
			},
		},
		{
			Name: "a reconcile without a change keeps the objects",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1")), storeUID("ConfigMap", "app"),
				reconcile("it"), reconcile("it"), requireSame("ConfigMap", "app"), deleteAndWait("it"),
			},
		},
		{
			Name: "updateOnChangeOnly skips a job without a change",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1", withUpdateOnChangeOnly)), editConfigMap, reconcile("it"),
				install("it", newApp("2", withUpdateOnChangeOnly)), expectValue("app", "a", "2"), deleteAndWait("it"),
			},
		},
	}
}

// listMoveScenarios returns the scenarios in which items or objects are removed, moved and edited.
func listMoveScenarios() []Scenario {
	return []Scenario{
		{
			Name: "the objects of an item that the blueprint no longer contains are deleted",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newChain()),
				install("it", newBlueprint(newManifestItem("first", []object{newConfigMap("first", "a", "1")}))),
				expectNoObject("ConfigMap", "third"), expectValue("first", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "an object moves from one item to another",
			Steps: []steps.Step{
				createTarget("cluster"),
				install("it", newTwoItems([]object{newConfigMap("one"), newConfigMap("moved", "a", "1")}, []object{newConfigMap("two")})),
				install("it", newTwoItems([]object{newConfigMap("one")}, []object{newConfigMap("two")})), expectNoObject("ConfigMap", "moved"),
				install("it", newTwoItems([]object{newConfigMap("one")}, []object{newConfigMap("two"), newConfigMap("moved", "a", "1")})),
				expectValue("moved", "a", "1"), deleteAndWait("it"), expectNoObject("ConfigMap", "moved"),
			},
		},
		{
			Name: "the next job restores an object that was edited by hand",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1")), editConfigMap, reconcile("it"), expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
	}
}

func listSharingScenarios() []Scenario {
	one := []object{newNamespace("shared"), newConfigMapIn("shared", "one")}
	two := []object{newNamespace("shared"), newConfigMapIn("shared", "two")}
	return []Scenario{{
		Name: "two items share a Namespace",
		Steps: []steps.Step{
			createTarget("cluster"), install("it", newTwoItems(one, two)),
			apply("it", newBlueprint(newManifestItem("a", one))),
			// A deployer that does not support shared objects may have deleted the Namespace. In that case, the next job
			// creates it again.
			reconcile("it"), deleteAndWait("it"),
		},
	}}
}

// listPreservationScenarios returns the scenarios in which objects remain after a deletion.
func listPreservationScenarios() []Scenario {
	return []Scenario{
		{
			Name: "a deletion without uninstallation keeps the objects",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1")),
				install("it", newApp("1"), func(in *lsv1alpha1.Installation) {
					metav1.SetMetaDataAnnotation(&in.ObjectMeta, lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")
				}),
				deleteAndWait("it"), expectValue("app", "a", "1"),
			},
		},
		{
			Name: "the policy keep keeps the objects after a deletion",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1", withPolicy("keep"))), deleteAndWait("it"), expectValue("app", "a", "1"),
			},
		},
	}
}

// newTwoItems returns a blueprint with two items of the manifest deployer. The second item depends on the first item.
func newTwoItems(a, b []object) blueprint {
	return newBlueprint(newManifestItem("a", a), newManifestItem("b", b, withDependencies("a")))
}

// newNamespace returns a Namespace. Its name begins with the name of the scenario's namespace.
func newNamespace(name string) object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespacePlaceholder + "-" + name}}
}

// newConfigMapIn returns a ConfigMap in the Namespace that newNamespace returns.
func newConfigMapIn(namespace, name string) object {
	cm := newConfigMap(name, "a", "1")
	cm["metadata"] = object{"name": name, "namespace": namespacePlaceholder + "-" + namespace}
	return cm
}
