// SPDX-License-Identifier: Apache-2.0

// Command generate writes manifests/, which kustomize and kubectl take: what the charts render, without what is Helm's.
package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
# The same namespace is in the names of the cluster roles, which may stay as they are.
namespace: ls-system
resources: [%s.yaml]
`

func main() {
	for _, name := range []string{"manifest-deployer", "mock-deployer"} {
		if err := write(name); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

func write(name string) error {
	rendered, err := helm.Render(helm.Chart(name), name, "ls-system", "")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What charts/%s renders by default, made by 'make generate'.\n", name)
	for _, object := range rendered.Objects {
		if err := clean(object); err != nil {
			return err
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	dir := filepath.Join(helm.Root(), "manifests", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, kustomization, name), 0o644); err != nil { //nolint:gosec // of the repository
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".yaml"), out.Bytes(), 0o644) //nolint:gosec // of the repository
}

// clean removes what is specific to Helm, and makes the configuration readable.
func clean(object *unstructured.Unstructured) error {
	labels := object.GetLabels()
	delete(labels, "helm.sh/chart")
	delete(labels, "app.kubernetes.io/managed-by")
	object.SetLabels(labels)
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
	data, has, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil || !has || object.GetKind() != "Secret" {
		return err
	}
	for key, value := range data {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return err
		}
		data[key] = string(decoded)
	}
	delete(object.Object, "data")
	return unstructured.SetNestedStringMap(object.Object, data, "stringData")
}
