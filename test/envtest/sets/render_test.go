// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/apply"
)

//go:embed testdata
var files embed.FS

// parameters are the inputs of the templates in testdata.
type parameters struct {
	Name      string // the name of the set
	Namespace string // the namespace of the set; also part of the names of all cluster-scoped objects
	Group     string // the API group of the set
	Version   string // the API version of the objects in this group
	URL       string // the address of the webhooks of the set
	Port      string // the port of the webhooks
	Value     string // a value in the ConfigMap "settings"
	Upgraded  bool   // the definitions no longer serve the version v1alpha1
	Removed   bool   // the definitions no longer contain the version v1alpha1
	Stored    string // the version in which the API server stores objects; the default is Version
	Strategy  string // the update strategy; the default is that of the deployer
	Edits     []edit // changes of the objects in the templates
}

// edit is a change of one field.
type edit struct {
	kind, name string // as in field
	path       []string
	value      any
}

func newParameters(name string) parameters {
	return parameters{
		Name: name, Namespace: "set-" + name, Group: name + ".sets.test.deployerkit.dev", Version: "v1alpha1",
		URL: webhooks.URL + "/" + name, Port: webhooks.getPort(), Value: "first",
	}
}

// withStrategy returns the parameters of another copy of the set, which has an update strategy.
func (p parameters) withStrategy(strategy string) parameters {
	p.Namespace, p.Group, p.Strategy = strategy+"-"+p.Name, p.Name+"."+strategy+".test.deployerkit.dev", strategy
	return p
}

// withUpgrade returns the parameters after an upgrade of the set.
func (p parameters) withUpgrade() parameters {
	p.Version, p.Upgraded = "v1", true
	return p
}

// withChange returns the parameters after a change of one object.
func (p parameters) withChange() parameters {
	p.Value = "second"
	return p
}

// withEdit returns the parameters after another change of one object.
func (p parameters) withEdit(e edit) parameters {
	p.Edits = append(slices.Clip(p.Edits), e)
	return p
}

// renderManifests returns the objects of the set.
func (p parameters) renderManifests() []*unstructured.Unstructured {
	GinkgoHelper()
	parsed, err := template.New("").Funcs(functions).Option("missingkey=zero").ParseFS(files, "testdata/parts.tmpl", "testdata/"+p.Name+".yaml")
	Expect(err).NotTo(HaveOccurred())
	var text bytes.Buffer
	Expect(parsed.ExecuteTemplate(&text, p.Name+".yaml", p)).To(Succeed())
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text.String(), "\n---\n") {
		obj := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed(), document)
		out = append(out, obj)
	}
	for _, e := range p.Edits {
		obj := p.find(out, e.kind, e.name)
		last := len(e.path) - 1
		parent, isMap := valueAt(obj.Object, e.path[:last]).(map[string]any)
		Expect(isMap).To(BeTrue(), "%s contains no object at %s", keyOf(obj), e.path[:last])
		parent[e.path[last]] = e.value
	}
	return out
}

// getShortName returns the name of an object without a prefix or suffix that contains the name of the set.
func (p parameters) getShortName(obj *unstructured.Unstructured) string {
	name, _ := strings.CutPrefix(obj.GetName(), p.Namespace)
	name, _, _ = strings.Cut(name, "."+p.Group)
	return name
}

// find returns the object of a kind with a name. The name is that which short returns.
func (p parameters) find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == kind && p.getShortName(obj) == name
	})
	Expect(i).To(BeNumerically(">=", 0), "the set contains no %s %s", kind, name)
	return objects[i]
}

// config returns the configuration of a deploy item with the objects of the set.
func (p parameters) config() map[string]any {
	GinkgoHelper()
	var entries []any
	for _, obj := range p.renderManifests() {
		entries = append(entries, map[string]any{"manifest": obj.Object})
	}
	config := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": entries,
	}
	if p.Strategy != "" {
		config["updateStrategy"] = p.Strategy
	}
	return config
}

// owns reports whether a name or namespace belongs to the set.
func (p parameters) owns(name string) bool {
	return strings.Contains(name, p.Namespace) || strings.HasSuffix(name, p.Group)
}

// functions are the functions that the templates use.
var functions = template.FuncMap{
	"list":  func(items ...any) []any { return items },
	"lower": strings.ToLower,
	"dict": func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			out[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return out
	},
	// padding returns n fields of a schema, of 1 KiB each.
	"padding": func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("field%04d: {type: string, description: %q}", i, strings.Repeat("A long text. ", 74))
		}
		return out
	},
}

// keyOf identifies an object regardless of its API version.
func keyOf(obj *unstructured.Unstructured) string {
	ref := apply.ToRef(obj)
	return ref.GVK().GroupKind().String() + " " + ref.Namespace + "/" + ref.Name
}
