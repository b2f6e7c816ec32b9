// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// listTargetScenarios returns the scenarios about the forms of Targets.
func listTargetScenarios() []Scenario {
	return []Scenario{
		{
			Name: "a Target refers to a Secret",
			Steps: []steps.Step{
				createSecretTarget("cluster"), install("it", newApp("1")), expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "a blueprint deploys an item to each Target of a list",
			Steps: []steps.Step{
				createTarget("blue"), createTarget("green"),
				install("it", newTargetListBlueprint(), withTargetImport(lsv1alpha1.TargetImport{Targets: []string{"blue", "green"}})),
				requireObject("ConfigMap", "app-0"), requireObject("ConfigMap", "app-1"), deleteAndWait("it"),
			},
		},
		{
			Name: "the items of a blueprint use Targets of a map",
			Steps: []steps.Step{
				createTarget("blue"), createTarget("green"),
				install("it", newTargetMapBlueprint(), withTargetImport(lsv1alpha1.TargetImport{TargetMap: map[string]string{"b": "blue", "g": "green"}})),
				requireObject("ConfigMap", "one"), requireObject("ConfigMap", "two"), deleteAndWait("it"),
			},
		},
	}
}

// newTargetListBlueprint returns a blueprint with an item for each Target of an imported list.
func newTargetListBlueprint() blueprint {
	return blueprint{
		imports: []object{{"name": "clusters", "type": "targetList", "targetType": steps.ClusterTargetType}},
		template: `deployItems:
{{ range $i, $target := .imports.clusters }}
- name: app-{{ $i }}
  type: ` + manifestType + `
  target: {import: clusters, index: {{ $i }}}
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    manifests:
    - {policy: manage, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: "app-{{ $i }}", namespace: ` + namespacePlaceholder + `}}}
{{ end }}`,
	}
}

// newTargetMapBlueprint returns a blueprint with two items, which use two Targets of an imported map.
func newTargetMapBlueprint() blueprint {
	return blueprint{
		imports: []object{{"name": "clusters", "type": "targetMap", "targetType": steps.ClusterTargetType}},
		items: []object{
			newManifestItem("one", []object{newConfigMap("one")}, withTarget(object{"import": "clusters", "key": "b"})),
			newManifestItem("two", []object{newConfigMap("two")}, withTarget(object{"import": "clusters", "key": "g"})),
		},
	}
}

// withTargetImport sets the Targets of the import "clusters".
func withTargetImport(targets lsv1alpha1.TargetImport) change {
	targets.Name = "clusters"
	return func(in *lsv1alpha1.Installation) { in.Spec.Imports.Targets = []lsv1alpha1.TargetImport{targets} }
}

// listMissingTargetScenarios returns the scenarios in which a Target is missing or replaced.
func listMissingTargetScenarios() []Scenario {
	return []Scenario{
		{
			Name: "an item fails without a Target, and succeeds with one",
			Steps: []steps.Step{
				apply("it", blueprint{items: []object{newManifestItem("app", []object{newConfigMap("app")}, withTimeout("6s"), withoutTarget)}}),
				expectFailure("it", failed),
				createTarget("cluster"), install("it", newApp("1")), expectValue("app", "a", "1"), deleteAndWait("it"),
			},
		},
		{
			Name: "an Installation fails if its Target is missing, and succeeds after the Target was created",
			Steps: []steps.Step{
				apply("it", newApp("1")), expectFailure("it", failed), createTarget("cluster"), reconcile("it"), deleteAndWait("it"),
			},
		},
		{
			Name: "another Target for the same cluster does not recreate the objects",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1")), storeUID("ConfigMap", "app"),
				createSecretTarget("other"), install("it", newApp("1"), withTargetBinding("other")), requireSame("ConfigMap", "app"),
				deleteAndWait("it"), expectNoObject("ConfigMap", "app"),
			},
		},
		{
			Name: "a deletion fails if the Target is missing, and succeeds after the Target was created again", Waits: true,
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1", withTimeout("40s"))), deleteTarget("cluster"),
				deleteInstallation("it"), expectFailure("it", deleteFailed),
				createTarget("cluster"), requestOperation("it", lsv1alpha1.ReconcileOperation), expectUninstalled("it"), expectNoObject("ConfigMap", "app"),
			},
		},
	}
}

// withoutTarget removes the Target of a deploy item.
func withoutTarget(item object) { delete(item, "target") }

// withTargetBinding binds the import "cluster" to another Target.
func withTargetBinding(name string) change {
	return func(in *lsv1alpha1.Installation) { in.Spec.Imports.Targets[0].Target = name }
}

// listContextScenarios returns the scenarios about Contexts.
func listContextScenarios() []Scenario {
	return []Scenario{
		{
			Name: "an Installation uses its own Context",
			Steps: []steps.Step{
				createTarget("cluster"), createContext("own"), install("it", newApp("1"), withContext("own")), deleteAndWait("it"),
			},
		},
		{
			Name: "an Installation fails if its Context is missing, and succeeds after the Context was created",
			Steps: []steps.Step{
				createTarget("cluster"), apply("it", newApp("1"), withContext("own")), expectFailure("it", failed),
				createContext("own"), install("it", newApp("1"), withContext("own")), deleteAndWait("it"),
			},
		},
	}
}

// withContext sets the Context of an Installation.
func withContext(name string) change {
	return func(in *lsv1alpha1.Installation) { in.Spec.Context = name }
}
