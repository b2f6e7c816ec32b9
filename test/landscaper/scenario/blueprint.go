// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/yaml"
)

// object is a JSON object, for example a manifest or a part of one.
type object = map[string]any

// The types of the deploy items.
const (
	manifestType = "landscaper.gardener.cloud/kubernetes-manifest"
	mockType     = "landscaper.gardener.cloud/mock"
	clusterType  = "landscaper.gardener.cloud/kubernetes-cluster"
)

// blueprint is the inline blueprint of an Installation.
type blueprint struct {
	items     []object // value of deployItems; ignored if the field `template` is set
	template  string
	imports   []object
	exports   []string // names of exported parameters
	exportOf  string   // template of the export execution
	subs      []object // InstallationTemplates
	subFiles  map[string]string
	otherText object // further fields of the blueprint
}

// files returns the files of the blueprint.
func (b blueprint) files() map[string]string {
	files := map[string]string{}
	maps.Copy(files, b.subFiles)
	spec := object{
		"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Blueprint",
		"jsonSchema": "https://json-schema.org/draft/2019-09/schema", "imports": b.imports,
	}
	maps.Copy(spec, b.otherText)
	template := b.template
	if template == "" && len(b.items) > 0 {
		template = asYAML(object{"deployItems": b.items})
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
		files["export.yaml"] = b.exportOf
		spec["exports"] = exports
		spec["exportExecutions"] = []object{{"name": "default", "type": "GoTemplate", "file": "/export.yaml"}}
	}
	var subs []object
	for i, sub := range b.subs {
		name := fmt.Sprintf("sub-%d.yaml", i)
		files[name] = asYAML(sub)
		subs = append(subs, object{"file": "/" + name})
	}
	if subs != nil {
		spec["subinstallations"] = subs
	}
	files["blueprint.yaml"] = asYAML(spec)
	return files
}

// inline returns the blueprint as it appears in an Installation.
func (b blueprint) inline() lsv1alpha1.BlueprintDefinition {
	return lsv1alpha1.BlueprintDefinition{Inline: &lsv1alpha1.InlineBlueprint{Filesystem: lsv1alpha1.NewAnyJSON(rawJSON(b.files()))}}
}

// asYAML encodes a file of a blueprint.
func asYAML(value any) string {
	out, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // this error cannot happen, because the value is part of a scenario
	}
	return string(out)
}

// importsTarget declares imports of Targets.
func importsTarget(names ...string) []object {
	var out []object
	for _, name := range names {
		out = append(out, object{"name": name, "type": "target", "targetType": clusterType})
	}
	return out
}

// importsData declares an import of data.
func importsData(name string) object { return object{"name": name, "type": "data", "schema": object{}} }

// option changes a deploy item.
type option func(item object)

func dependsOn(names ...string) option { return func(item object) { item["dependsOn"] = names } }

func timeout(d string) option { return func(item object) { item["timeout"] = d } }

func onChangeOnly(item object) { item["updateOnChangeOnly"] = true }

// target returns an option that replaces the Target of a deploy item. By default, the Target is the import "cluster".
func target(ref object) option { return func(item object) { item["target"] = ref } }

// config returns an option that sets a field in the configuration of a deploy item.
func config(key string, value any) option {
	return func(item object) { item["config"].(object)[key] = value }
}

// strategy returns an option that sets the update strategy of a deploy item.
func strategy(name string) option { return config("updateStrategy", name) }

// policy returns an option that sets the policy of all manifests of a deploy item.
func policy(name string) option {
	return func(item object) {
		for _, m := range item["config"].(object)["manifests"].([]object) {
			m["policy"] = name
		}
	}
}

// manifests returns a deploy item of the manifest deployer. Its Target is the import "cluster".
func manifests(name string, objects []object, options ...option) object {
	list := []object{}
	for _, o := range objects {
		list = append(list, object{"policy": "manage", "manifest": o})
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

// mock returns a deploy item of the mock deployer.
func mock(name string, options ...option) object {
	item := object{
		"name": name, "type": mockType,
		"config": object{"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration"},
	}
	for _, o := range options {
		o(item)
	}
	return item
}

// The constant `here` is a placeholder in manifests. Env replaces it with the namespace of the scenario.
const here = "${namespace}"

// cm returns a ConfigMap. The parameter `pairs` contains alternating keys and values.
func cm(name string, pairs ...string) object {
	data := object{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": here}, "data": data}
}

// deployment returns the Deployment "app" with one container.
func deployment(replicas int, labels ...string) object {
	const name = "app"
	app := object{"app": name}
	for _, label := range labels {
		app[label] = "true"
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name, "namespace": here},
		"spec": object{
			"replicas": replicas, "selector": object{"matchLabels": object{"app": name}},
			"template": object{
				"metadata": object{"labels": app},
				"spec":     object{"containers": []object{{"name": "main", "image": "example.org/none:1"}}},
			},
		},
	}
}

// tokenSecret returns a ServiceAccount and a Secret into which kube-controller-manager writes a token.
func tokenSecret(account, secret string) []object {
	return []object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": here}},
		{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
			"metadata": object{"name": secret, "namespace": here, "annotations": object{"kubernetes.io/service-account.name": account}},
		},
	}
}
