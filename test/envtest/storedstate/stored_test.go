// SPDX-License-Identifier: Apache-2.0

package storedstate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/controlplane"
)

// storage maps the kinds of stored objects to the prefixes of their keys in etcd. The objects are stored in this order.
var storage = []struct {
	gvk    schema.GroupVersionKind
	prefix string
}{
	{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces"},
	{schema.GroupVersionKind{Group: "landscaper.gardener.cloud", Version: "v1alpha1", Kind: "Context"}, "landscaper.gardener.cloud/contexts"},
	{schema.GroupVersionKind{Group: "landscaper.gardener.cloud", Version: "v1alpha1", Kind: "Target"}, "landscaper.gardener.cloud/targets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "services/specs"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods"},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments"},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets"},
	{schema.GroupVersionKind{Group: "landscaper.gardener.cloud", Version: "v1alpha1", Kind: "DeployItem"}, "landscaper.gardener.cloud/deployitems"},
}

// isOfControlPlane reports whether the control plane creates the object itself, or the test creates it anew.
func isOfControlPlane(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "Namespace":
		return obj.GetName() != "demo" && obj.GetName() != "kube-system"
	case "ConfigMap":
		return obj.GetNamespace() != "demo" || obj.GetName() == "kube-root-ca.crt"
	case "Secret":
		return obj.GetNamespace() != "demo" || obj.GetName() == "cluster"
	case "Service", "Pod":
		return obj.GetNamespace() != "demo"
	}
	return false
}

// readStored returns the stored objects, with everything that the API server returns except the resource version.
func readStored(ctx context.Context, c client.Client) []*unstructured.Unstructured {
	GinkgoHelper()
	var out []*unstructured.Unstructured
	for _, kind := range storage {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.gvk.GroupVersion().WithKind(kind.gvk.Kind + "List"))
		Expect(c.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			obj := &list.Items[i]
			if isOfControlPlane(obj) {
				continue
			}
			obj.SetResourceVersion("")
			out = append(out, obj)
		}
	}
	return out
}

// writeFile writes objects to a YAML file.
func writeFile(path string, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	var documents []string
	for _, obj := range objects {
		document, err := yaml.Marshal(obj.Object)
		Expect(err).NotTo(HaveOccurred())
		documents = append(documents, string(document))
	}
	Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
	Expect(os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600)).To(Succeed())
}

// readObjects reads the objects of a YAML file.
func readObjects(path string) []*unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(content), "---\n") {
		obj := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
		out = append(out, obj)
	}
	return out
}

// store writes objects to etcd as they are, with their UIDs, times and managedFields, which the API server would replace.
func store(ctx context.Context, cp *controlplane.ControlPlane, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, obj := range objects {
		value, err := obj.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		body, err := json.Marshal(map[string][]byte{"key": []byte(storageKey(obj)), "value": value})
		Expect(err).NotTo(HaveOccurred())
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, cp.EtcdURL()+"/v3/kv/put", bytes.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusOK), storageKey(obj))
	}
}

func storageKey(obj *unstructured.Unstructured) string {
	GinkgoHelper()
	for _, kind := range storage {
		if kind.gvk == obj.GroupVersionKind() {
			return strings.TrimSuffix(strings.Join([]string{"/registry", kind.prefix, obj.GetNamespace(), obj.GetName()}, "/"), "/")
		}
	}
	Fail("there is no key for " + obj.GroupVersionKind().String())
	return ""
}

// get reads an object.
func get(ctx context.Context, c client.Client, o object) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(o.apiVersion)
	obj.SetKind(o.kind)
	return obj, c.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: o.name}, obj)
}

// exists returns an error unless it is known whether the object exists.
func exists(ctx context.Context, c client.Client, o object) (bool, error) {
	_, err := get(ctx, c, o)
	return err == nil, client.IgnoreNotFound(err)
}

// patch applies a merge patch to an object.
func patch(ctx context.Context, c client.Client, o object, body string) error {
	obj, err := get(ctx, c, o)
	if err != nil {
		return err
	}
	return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(body)))
}

// patchStatus applies a merge patch to the status of an object.
func patchStatus(ctx context.Context, c client.Client, o object, body string) error {
	obj, err := get(ctx, c, o)
	if err != nil {
		return err
	}
	return c.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(body)))
}

// replaceAll returns a function that replaces texts, each of which must occur.
func replaceAll(pairs ...string) func(string) string {
	return func(text string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				panic(fmt.Sprintf("%q is not in %s", pairs[i], text))
			}
		}
		return strings.NewReplacer(pairs...).Replace(text)
	}
}

// convertYAML decodes the first document of a YAML text.
func convertYAML(text string, into *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(yaml.Unmarshal([]byte(text), &into.Object)).To(Succeed())
}

// convert decodes an object.
func convert(obj *unstructured.Unstructured, into any) {
	GinkgoHelper()
	content, err := obj.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(content, into)).To(Succeed())
}
