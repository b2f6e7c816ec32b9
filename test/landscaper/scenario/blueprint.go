// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/internal/steps"
)

// object is a JSON object, for example a manifest or a part of one.
type object = map[string]any

// The types of the deploy items.
const (
	manifestType = "landscaper.gardener.cloud/kubernetes-manifest"
	mockType     = "landscaper.gardener.cloud/mock"
)

// namespacePlaceholder is replaced with the namespace of the scenario when an Installation is applied.
const namespacePlaceholder = "${namespace}"

// blueprint is the inline blueprint of an Installation.
type blueprint struct {
	items          []object // ignored if the field `template` is set
	template       string   // template of the deploy items
	imports        []object
	exports        []string // names of exported parameters
	exportTemplate string
	subs           []object // InstallationTemplates
}

// newBlueprint returns a blueprint that imports the Target "cluster".
func newBlueprint(items ...object) blueprint {
	return blueprint{imports: newTargetImports("cluster"), items: items}
}

// newApp returns a blueprint with one item, which deploys the ConfigMap "app" with a value "a".
func newApp(a string, options ...option) blueprint {
	return newBlueprint(newManifestItem("app", []object{newConfigMap("app", "a", a)}, options...))
}

// toFiles returns the files of the blueprint.
func (b blueprint) toFiles() map[string]string {
	files := map[string]string{}
	spec := object{
		"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Blueprint",
		"jsonSchema": "https://json-schema.org/draft/2019-09/schema", "imports": b.imports,
	}
	template := b.template
	if template == "" && len(b.items) > 0 {
		template = mustMarshalYAML(object{"deployItems": b.items})
	}
	if template != "" {
		files["deploy.yaml"] = template
		spec["deployExecutions"] = []object{{"name": "default", "type": "GoTemplate", "file": "/deploy.yaml"}}
	}
	if len(b.exports) > 0 {
		var exports []object
		for _, name := range b.exports {
			exports = append(exports, object{"name": name, "type": "data", "schema": object{}})
		}
		files["export.yaml"] = b.exportTemplate
		spec["exports"] = exports
		spec["exportExecutions"] = []object{{"name": "default", "type": "GoTemplate", "file": "/export.yaml"}}
	}
	var subs []object
	for i, sub := range b.subs {
		name := fmt.Sprintf("sub-%d.yaml", i)
		files[name] = mustMarshalYAML(sub)
		subs = append(subs, object{"file": "/" + name})
	}
	if subs != nil {
		spec["subinstallations"] = subs
	}
	files["blueprint.yaml"] = mustMarshalYAML(spec)
	return files
}

// toDefinition returns the blueprint as it appears in an Installation.
func (b blueprint) toDefinition() lsv1alpha1.BlueprintDefinition {
	return lsv1alpha1.BlueprintDefinition{Inline: &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON(mustMarshal(b.toFiles()))}}
}

// mustMarshalYAML encodes a file of a blueprint.
func mustMarshalYAML(value any) string {
	out, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // this error cannot happen, because the value is part of a scenario
	}
	return string(out)
}

// newTargetImports returns imports of Targets.
func newTargetImports(names ...string) []object {
	var out []object
	for _, name := range names {
		out = append(out, object{"name": name, "type": "target", "targetType": steps.ClusterTargetType})
	}
	return out
}

// newDataImport returns an import of data.
func newDataImport(name string) object {
	return object{"name": name, "type": "data", "schema": object{}}
}

// newManifestItem returns a deploy item of the manifest deployer. Its Target is the import "cluster".
func newManifestItem(name string, manifests []object, options ...option) object {
	list := []object{}
	for _, m := range manifests {
		list = append(list, object{"policy": "manage", "manifest": m})
	}
	item := object{
		"name": name, "type": manifestType, "target": object{"import": "cluster"},
		"config": object{
			"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
			"updateStrategy": "update", "manifests": list,
		},
	}
	for _, o := range options {
		o(item)
	}
	return item
}

// newMockItem returns a deploy item of the mock deployer.
func newMockItem(name string, options ...option) object {
	item := object{
		"name": name, "type": mockType,
		"config": object{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"},
	}
	for _, o := range options {
		o(item)
	}
	return item
}

// option changes a deploy item.
type option func(item object)

func withDependencies(names ...string) option {
	return func(item object) { item["dependsOn"] = names }
}

func withTimeout(d string) option { return func(item object) { item["timeout"] = d } }

func withUpdateOnChangeOnly(item object) { item["updateOnChangeOnly"] = true }

func withTarget(ref object) option { return func(item object) { item["target"] = ref } }

// withConfig sets a field in the configuration of a deploy item.
func withConfig(key string, value any) option {
	return func(item object) { item["config"].(object)[key] = value }
}

func withStrategy(name string) option { return withConfig("updateStrategy", name) }

// withPolicy sets the policy of all manifests of a deploy item.
func withPolicy(name string) option {
	return func(item object) {
		for _, m := range item["config"].(object)["manifests"].([]object) {
			m["policy"] = name
		}
	}
}

// withExport exports a field of an object that a deploy item deploys.
func withExport(key, jsonPath, kind, name string) option {
	return withConfig("exports", object{"exports": []object{{
		"key": key, "jsonPath": jsonPath,
		"fromResource": object{"apiVersion": "v1", "kind": kind, "name": name, "namespace": namespacePlaceholder},
	}}})
}

// newConfigMap returns a ConfigMap with the data in pairs, which contains alternating keys and values.
func newConfigMap(name string, pairs ...string) object {
	data := object{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespacePlaceholder}, "data": data}
}

// newDeployment returns the Deployment "app" with one container. Its Pods have the given labels.
func newDeployment(replicas int, labels ...string) object {
	const name = "app"
	app := object{"app": name}
	for _, label := range labels {
		app[label] = "true"
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": namespacePlaceholder},
		"spec": object{
			"replicas": replicas, "selector": object{"matchLabels": object{"app": name}},
			"template": object{
				"metadata": object{"labels": app},
				"spec":     object{"containers": []object{{"name": "main", "image": "example.org/none:1"}}},
			},
		},
	}
}

// newTokenSecret returns a ServiceAccount and a Secret into which kube-controller-manager writes a token.
func newTokenSecret(account, secret string) []object {
	return []object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": namespacePlaceholder}},
		{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
			"metadata": object{"name": secret, "namespace": namespacePlaceholder, "annotations": object{"kubernetes.io/service-account.name": account}},
		},
	}
}
