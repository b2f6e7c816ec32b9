// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// FuzzPrepare prepares arbitrary manifests. For each manifest, the result is either permanent errors of one line, or
// objects that belong to the item.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","labels":{"a":1},"annotations":"x"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}`,
		`{"apiVersion":"v1","kind":"List","items":[null,1,{"items":[{}]},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}]}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[1,{"name":2}],"names":[]}}`,
		`{"apiVersion":"a/b/c","kind":"","metadata":{"labels":{"deployerkit.dev/item":"x"}}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"},"stringData":{"k":1},"data":[]}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"},"stringData":{"k":"v","l":["v"]},"data":{"v":"v"}}`,
		`{"apiVersion":"v1","kind":"Secret\n","metadata":{"namespace":"b\r","labels":{"deployerkit.dev/\n":"v"}},"stringData":"v"}`,
	} {
		f.Add([]byte(seed))
	}
	mapper := newSecretMapper()
	engine := New(nil, mapper, Options{})
	owner := ownership.Owner{UID: "item", Landscape: "l", Namespace: "n", Name: "i"}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 || json.Unmarshal(data, &map[string]any{}) != nil {
			return
		}
		first, err := prepareManifests(t, engine, owner, data)
		_, again := prepareManifests(t, engine, owner, data)
		if err != nil {
			checkFaults(t, err)
			if again == nil || err.Error() != again.Error() {
				t.Errorf("first %q, then %q", err, again)
			}
		}
		seen := map[Ref]bool{}
		for _, o := range first {
			labels, isMap, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "metadata", "labels")
			values, _ := labels.(map[string]any)
			if isMap && values != nil && values[ownership.LabelItem] != "item" { // the API server refuses labels of other types
				t.Errorf("%s does not belong to the item: %v", o.ref, labels)
			}
			if o.hash == "" || o.ref.Name == "" || o.ref.Namespace == "" || seen[o.ref] {
				t.Errorf("%+v", o)
			}
			seen[o.ref] = true
		}
	})
}

// prepareCanary is a secret value that no error may contain.
const prepareCanary = "CANARY-4711"

// newSecretMapper returns a mapper for ConfigMaps and Secrets.
func newSecretMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	return mapper
}

// prepareManifests prepares one manifest. It also uses the manifest as each patch of the object.
func prepareManifests(t *testing.T, engine *Engine, owner ownership.Owner, data []byte) ([]*desiredObject, error) {
	t.Helper()
	bodies := make([]map[string]any, 3)
	for i := range bodies {
		if err := json.Unmarshal(data, &bodies[i]); err != nil {
			t.Fatal(err)
		}
		hideValues(bodies[i], false)
	}
	return engine.begin(owner, Inventory{}).prepare(t.Context(), []Desired{{
		Object: &unstructured.Unstructured{Object: bodies[0]}, PatchAfterDeployment: bodies[1], PatchBeforeDelete: bodies[2],
	}}, false)
}

// hideValues replaces all strings in the data of an object by prepareCanary. If the object is a list, it does the same
// for the items.
func hideValues(value any, inData bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			_, isText := member.(string)
			below := inData || key == "data" || key == "stringData"
			if below && isText {
				v[key] = prepareCanary
			} else if below || key == "items" {
				hideValues(member, below)
			}
		}
	case []any:
		for i, member := range v {
			if _, isText := member.(string); isText && inData {
				v[i] = prepareCanary
			} else {
				hideValues(member, inData)
			}
		}
	}
}

// checkFaults requires that each error is permanent, short, a single line and free of secret values.
func checkFaults(t *testing.T, err error) {
	t.Helper()
	all, isErrors := errors.AsType[Errors](err)
	if !isErrors || GetClass(err) != ClassPermanent {
		t.Errorf("%T %v", err, err)
	}
	for _, text := range append(listTexts(all), err.Error()) {
		if strings.ContainsAny(text, "\n\r") || strings.Contains(text, prepareCanary) {
			t.Errorf("error %q", text)
		}
	}
	if len(err.Error()) > maxTextLength {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func listTexts(all Errors) []string {
	var out []string
	for _, one := range all {
		out = append(out, one.Error())
	}
	return out
}
