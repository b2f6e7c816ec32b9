// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// All returns the scenarios that every mock deployer and every manifest deployer must pass. The scenarios can run at
// the same time.
func All() []Scenario {
	return slices.Concat(
		listOrderScenarios(), listDataScenarios(), listSizeScenarios(),
		listUpdateScenarios(), listMoveScenarios(), listSharingScenarios(), listPreservationScenarios(),
		listRepairScenarios(), listEndScenarios(),
		listTargetScenarios(), listMissingTargetScenarios(), listContextScenarios(),
		listOperationScenarios(), listWorkloadScenarios(),
	)
}

// listOrderScenarios returns the scenarios about the order of items.
func listOrderScenarios() []Scenario {
	return []Scenario{
		{
			Name: "an Installation is deployed and deleted",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newApp("1")), expectValue("app", "a", "1"),
				deleteAndWait("it"), expectNoObject("ConfigMap", "app"),
			},
		},
		{
			Name: "items that depend on each other run in order and are deleted in reverse order",
			Steps: []steps.Step{
				createTarget("cluster"), install("it", newChain()),
				requireObject("ConfigMap", "third"), requireOrder("first", "second", "third"),
				deleteInstallation("it"), expectDeletionOrder("third", "second", "first"), expectNoObject("ConfigMap", "first"),
			},
		},
	}
}

// listDataScenarios returns the scenarios about exports and imports.
func listDataScenarios() []Scenario {
	return []Scenario{
		{
			Name: "exports of items reach another Installation",
			Steps: []steps.Step{
				createTarget("cluster"), install("provider", newAddressExporter()), install("consumer", newImporter("address")),
				expectValue("app", "value", "db.example.com:5432"),
				deleteAndWait("consumer"), deleteAndWait("provider"), expectNoObject("ConfigMap", "settings"),
			},
		},
		{
			Name: "a changed export reaches the Installation that imports it",
			Steps: []steps.Step{
				createTarget("cluster"),
				install("provider", newExporter("one")), install("consumer", newImporter("value")), expectValue("app", "value", "one"),
				install("provider", newExporter("two")), reconcile("consumer"), expectValue("app", "value", "two"),
				deleteAndWait("consumer"), deleteAndWait("provider"),
			},
		},
		{
			Name: "a sub-installation imports what another one exports",
			Steps: []steps.Step{
				createTarget("cluster"), createDataObject("base", "seed"), install("it", newParent()),
				expectValue("sub-one", "value", "seed"), expectValue("sub-two", "value", "seed-x"),
				deleteAndWait("it"), expectNoObject("ConfigMap", "sub-one"), expectNoObject("ConfigMap", "sub-two"),
			},
		},
	}
}

func listSizeScenarios() []Scenario {
	deployed, deleted := expectSuccess("it"), expectUninstalled("it")
	deployed.Timeout, deleted.Timeout = 4*timeout, 4*timeout // Landscaper needs long for so many items on a busy machine
	return []Scenario{{
		Name: "an Installation with 100 items is deployed and deleted",
		Steps: []steps.Step{
			createTarget("cluster"), apply("it", newLargeBlueprint()), deployed, expectValue("cm-99", "n", "99"),
			deleteInstallation("it"), deleted, expectNoObject("ConfigMap", "cm-99"),
		},
	}}
}

// newChain returns a blueprint with three items. Each item depends on the previous item.
func newChain() blueprint {
	return newBlueprint(
		newManifestItem("first", []object{newConfigMap("first", "a", "1")}),
		newMockItem("second", withDependencies("first")),
		newManifestItem("third", []object{newConfigMap("third", "c", "3")}, withDependencies("second")),
	)
}

// newAddressExporter returns a blueprint that combines the exports of a mock item and of a manifest item.
func newAddressExporter() blueprint {
	b := newBlueprint(
		newMockItem("host", withConfig("export", object{"host": "db.example.com"})),
		newManifestItem("port", []object{newConfigMap("settings", "port", "5432")}, withExport("port", ".data.port", "ConfigMap", "settings")),
	)
	// The exported values are grouped by item.
	b.exports, b.exportTemplate = []string{"address"}, "exports:\n  address: {{ .deployitems.host.host }}:{{ .deployitems.port.port }}\n"
	return b
}

// newExporter returns a blueprint that exports the value of a mock item.
func newExporter(value string) blueprint {
	return blueprint{
		items:   []object{newMockItem("value", withConfig("export", object{"value": value}))},
		exports: []string{"value"}, exportTemplate: "exports:\n  value: {{ .deployitems.value.value }}\n",
	}
}

// newImporter returns a blueprint that deploys an imported value.
func newImporter(name string) blueprint {
	b := newBlueprint(newManifestItem("app", []object{newConfigMap("app", "value", "{{ .imports."+name+" }}")}))
	b.imports = append(b.imports, newDataImport(name))
	return b
}

// newParent returns a blueprint with two sub-installations. The second sub-installation imports the values that the
// first sub-installation exports.
func newParent() blueprint {
	return blueprint{
		imports: append(newTargetImports("cluster"), newDataImport("base")),
		subs:    []object{newSubInstallation("sub-one", "base", "between"), newSubInstallation("sub-two", "between", "last")},
	}
}

// newSubInstallation returns an InstallationTemplate that deploys an imported value and exports a longer value.
func newSubInstallation(name, imported, exported string) object {
	b := newBlueprint(newManifestItem(name, []object{newConfigMap(name, "value", "{{ .imports.in }}")}))
	b.imports = append(b.imports, newDataImport("in"))
	b.exports, b.exportTemplate = []string{"out"}, "exports:\n  out: {{ .imports.in }}-x\n"
	return object{
		"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "InstallationTemplate", "name": name,
		"blueprint": object{"filesystem": b.toFiles()},
		"imports":   object{"targets": []object{{"name": "cluster", "target": "cluster"}}, "data": []object{{"name": "in", "dataRef": imported}}},
		"exports":   object{"data": []object{{"name": "out", "dataRef": exported}}},
	}
}

// newLargeBlueprint returns a blueprint with 50 items for each deployer.
func newLargeBlueprint() blueprint {
	b := newBlueprint()
	for i := range 50 {
		n := fmt.Sprint(50 + i)
		b.items = append(b.items, newMockItem(fmt.Sprintf("mock-%d", i)), newManifestItem("m-"+n, []object{newConfigMap("cm-"+n, "n", n)}))
	}
	return b
}

// expectDeletionOrder waits until all items are gone, and fails if they are deleted in another order.
func expectDeletionOrder(order ...string) steps.Step {
	return steps.Expect("the items are deleted in order", func(ctx context.Context, e *steps.Env) error {
		items, err := e.ListItems(ctx)
		if err != nil {
			return err
		}
		return checkDeletionOrder(items, order)
	})
}

// checkDeletionOrder returns an error until all items are gone. If items are deleted in another order, it returns a
// final error.
func checkDeletionOrder(items []lsv1alpha1.DeployItem, order []string) error {
	exists := map[string]bool{}
	for i := range items {
		exists[steps.ItemName(&items[i])] = true
	}
	for i, name := range order[1:] {
		if exists[order[i]] && !exists[name] {
			return steps.NewFinalError(fmt.Errorf("item %s was deleted before item %s", name, order[i]))
		}
	}
	if len(exists) > 0 {
		return fmt.Errorf("%d items are left", len(exists))
	}
	return nil
}
