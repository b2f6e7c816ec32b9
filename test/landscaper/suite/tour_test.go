// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

// example is a page of Landscaper's guided tour.
type example struct {
	dir string // directory below docs/guided-tour
	// blueprints contains the directories of the blueprints. The keys are the names of the component resources that
	// contain these blueprints. If blueprints is empty, the Installation itself contains the blueprint.
	blueprints map[string]string
	files      []string // files with further objects
	targets    []string // colours of the Targets, if there are several
	objects    []string // ConfigMaps that must exist at the end
	data       string   // a DataObject that must exist at the end
}

// tour lists the examples that need only manifest and mock items. Some examples take their blueprint from a component
// in a registry. In this case, the test puts the files of the blueprint into the Installation instead.
var tour = []example{
	{dir: "basics/manifest-deployer/installation", files: []string{"target"}, objects: []string{"hello-world"}},
	{dir: "targets/02-self-targets/installation", files: []string{"serviceaccount", "clusterrolebinding", "target"}, objects: []string{"self-target-example"}},
	{
		dir: "import-export/export-parameters/installation", blueprints: map[string]string{"blueprint": "../blueprint"},
		files: []string{"context", "target"}, data: "my-token",
	},
	{
		dir: "subinstallations/export-import/installation", blueprints: map[string]string{"blueprint-root": "../blueprints/root", "blueprint-sub": "../blueprints/sub"},
		files: []string{"context", "target", "dataobject"}, objects: []string{"example-configmap", "example-configmap-x", "example-configmap-x-x"}, data: "do-configmap-names",
	},
	{
		dir: "subinstallations/component-references/installation", blueprints: map[string]string{"blueprint-root": "../blueprints/root", "blueprint-sub": "../blueprints/sub"},
		files: []string{"context", "target", "dataobject"}, data: "do-configmap-names",
	},
	{
		dir: "subinstallations/subinst-templates/installation", blueprints: map[string]string{"blueprint-root": "../blueprints/root", "blueprint-sub": "../blueprints/sub"},
		files: []string{"context", "target"}, objects: []string{"cm-0", "cm-1"},
	},
	{
		dir: "target-maps/01-multiple-deploy-items/component/installation", blueprints: map[string]string{"blueprint": "../blueprint"},
		files: []string{"context", "dataobject"}, targets: colours, objects: []string{"multiple-items-red", "multiple-items-green", "multiple-items-blue"},
	},
	{
		dir: "target-maps/02-targetmap-ref/component/installation", blueprints: map[string]string{"blueprint-root": "../blueprint/root", "blueprint-sub": "../blueprint/sub"},
		files: []string{"context", "dataobject"}, targets: colours, objects: []string{"targetmapref-red", "targetmapref-blue"},
	},
	{
		dir: "target-maps/03-multiple-subinst/component/installation", blueprints: map[string]string{"blueprint-root": "../blueprint/root", "blueprint-sub": "../blueprint/sub"},
		files: []string{"context", "dataobject"}, targets: colours, objects: []string{"multiple-subinst-red", "multiple-subinst-blue"},
	},
	{
		dir:        "target-maps/04-forward-map/component/installation",
		blueprints: map[string]string{"blueprint-root": "../blueprint/root", "blueprint-sub": "../blueprint/sub", "blueprint-sub-sub": "../blueprint/subsub"},
		files:      []string{"context", "dataobject"}, targets: colours, objects: []string{"compose-map-exec-red", "compose-map-exec-blue"},
	},
}

// colours contains the colours of the Targets. The pages about maps of Targets use them.
var colours = []string{"red", "green", "blue", "yellow", "orange"}

// exampleNamespace is the namespace into which the examples deploy.
const exampleNamespace = "example"

var _ = Describe("Guided tour of Landscaper", Ordered, ContinueOnFailure, func() {
	var root string

	BeforeAll(func(ctx SpecContext) {
		source, err := landscaper.FindSource(ctx)
		Expect(err).NotTo(HaveOccurred())
		root = filepath.Join(source, "docs", "guided-tour")
		Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exampleNamespace}})).To(Succeed())
	})

	for i, ex := range tour {
		It("the example succeeds: "+filepath.Dir(ex.dir), func(ctx SpecContext) {
			p := &page{example: ex, dir: filepath.Join(root, ex.dir), namespace: "tour-" + string(rune('a'+i))}
			Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})).To(Succeed())
			for _, object := range p.objects() {
				Expect(client.IgnoreAlreadyExists(c.Create(ctx, object))).To(Succeed())
			}
			in := &lsv1alpha1.Installation{}
			Expect(yaml.Unmarshal([]byte(p.readInstallation()), in)).To(Succeed())
			Expect(c.Create(ctx, in)).To(Succeed())
			key := client.ObjectKeyFromObject(in)
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, key, in)).To(Succeed())
				g.Expect(in.Status.JobID).NotTo(BeEmpty())
				g.Expect(in.Status.InstallationPhase).To(Equal(lsv1alpha1.InstallationPhases.Succeeded), "lastError: %+v", in.Status.LastError)
			}, patience).Should(Succeed())
			for _, name := range ex.objects {
				Expect(c.Get(ctx, client.ObjectKey{Namespace: exampleNamespace, Name: name}, &corev1.ConfigMap{})).To(Succeed())
			}
			if ex.data != "" {
				d := &lsv1alpha1.DataObject{}
				Expect(c.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: ex.data}, d)).To(Succeed())
				Expect(string(d.Data.RawMessage)).NotTo(BeElementOf("", "null", `""`))
			}
			Expect(c.Delete(ctx, in)).To(Succeed())
			Eventually(func() error { return c.Get(ctx, key, in) }, patience).Should(MatchError(ContainSubstring("not found")))
			for _, name := range ex.objects {
				Expect(c.Get(ctx, client.ObjectKey{Namespace: exampleNamespace, Name: name}, &corev1.ConfigMap{})).NotTo(Succeed())
			}
		})
	}

	It("the suite contains all examples with inline blueprints of manifest and mock items", func() {
		var runnable []string
		Expect(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".tpl") {
				return err
			}
			text, err := os.ReadFile(path)
			types := itemTypes.FindAllStringSubmatch(string(text), -1)
			if err != nil || !strings.Contains(string(text), "inline:") || len(types) == 0 {
				return err
			}
			for _, t := range types {
				if t[1] != "kubernetes-manifest" && t[1] != "mock" {
					return nil
				}
			}
			rel, err := filepath.Rel(root, filepath.Dir(path))
			runnable = append(runnable, rel)
			return err
		})).To(Succeed())
		for _, dir := range runnable {
			Expect(slices.ContainsFunc(tour, func(ex example) bool { return ex.dir == dir && ex.blueprints == nil })).To(BeTrue(), dir)
		}
		Expect(runnable).NotTo(BeEmpty())
	})
})

// itemTypes matches the types of deploy items in a blueprint. It does not match types of Targets, which have another
// suffix.
var itemTypes = regexp.MustCompile(`(?m)^\s+type: landscaper\.gardener\.cloud/(helm|container|kubernetes-manifest|mock)$`)

// page is an example that is currently run.
type page struct {
	example
	dir       string
	namespace string
}

// read returns a file of the example. It replaces the variables in the file.
func (p *page) read(name, colour string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(p.dir, name+".yaml.tpl")) //nolint:gosec // in the module cache
	Expect(err).NotTo(HaveOccurred())
	var indented strings.Builder
	for line := range strings.Lines(string(cp.Kubeconfig())) {
		indented.WriteString("      " + line)
	}
	return strings.NewReplacer(
		"${namespace}", p.namespace, "${kubeconfig}", indented.String(), "${color}", colour,
		"${targetNamespace}", exampleNamespace, "${repoBaseUrl}", "registry.example.org",
	).Replace(string(text))
}

// objects returns the objects of the example besides the Installation.
func (p *page) objects() []client.Object {
	GinkgoHelper()
	texts := make([]string, 0, len(p.files)+len(p.targets))
	for _, name := range p.files {
		texts = append(texts, p.read(name, ""))
	}
	for _, colour := range p.targets {
		texts = append(texts, p.read("target", colour))
	}
	var out []client.Object
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(text), u)).To(Succeed())
		out = append(out, u)
	}
	return out
}

// readInstallation returns the Installation of the example with an inline blueprint.
func (p *page) readInstallation() string {
	GinkgoHelper()
	text := p.read("installation", "")
	if p.blueprints == nil {
		return text
	}
	var in map[string]any
	Expect(yaml.Unmarshal([]byte(text), &in)).To(Succeed())
	spec := in["spec"].(map[string]any)
	delete(spec, "componentDescriptor")
	name := spec["blueprint"].(map[string]any)["ref"].(map[string]any)["resourceName"].(string)
	spec["blueprint"] = map[string]any{"inline": map[string]any{"filesystem": p.readFilesystem(name)}}
	out, err := json.Marshal(in)
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}

// subBlueprint matches references to the blueprints of sub-installations.
var subBlueprint = regexp.MustCompile(`ref: cd://(?:componentReferences/[a-z]+/)?resources/([a-z-]+)`)

// readFilesystem returns the files of a blueprint. It replaces references to further blueprints of the example with
// inline file systems.
func (p *page) readFilesystem(name string) map[string]string {
	GinkgoHelper()
	dir := filepath.Join(p.dir, p.blueprints[name])
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name())) //nolint:gosec // in the module cache
		Expect(err).NotTo(HaveOccurred())
		out[entry.Name()] = subBlueprint.ReplaceAllStringFunc(string(text), func(ref string) string {
			files, err := json.Marshal(p.readFilesystem(subBlueprint.FindStringSubmatch(ref)[1]))
			Expect(err).NotTo(HaveOccurred())
			escaped := string(files)
			if strings.Contains(string(text), "{{") { // the file is a template itself
				escaped = "{{ `" + strings.ReplaceAll(escaped, "`", "") + "` }}"
			}
			return "filesystem: " + escaped
		})
	}
	return out
}
