// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// FuzzPrepare hands in manifests of any shape: each is either refused, with errors of one line that say what is
// permanent, or becomes objects that belong to the item.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","labels":{"a":1},"annotations":"x"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}`,
		`{"apiVersion":"v1","kind":"List","items":[null,1,{"items":[{}]},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}]}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[1,{"name":2}],"names":[]}}`,
		`{"apiVersion":"a/b/c","kind":"","metadata":{"labels":{"deployerkit.dev/item":"x"}}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"},"stringData":{"k":1},"data":[]}`,
	} {
		f.Add([]byte(seed))
	}
	engine := New(nil, configMaps(), Options{})
	owner := ownership.Owner{UID: "item", Landscape: "l", Namespace: "n", Name: "i"}
	f.Fuzz(func(t *testing.T, data []byte) {
		body := map[string]any{}
		if json.Unmarshal(data, &body) != nil {
			return
		}
		objects, _, err := engine.prepare(t.Context(), owner, []Desired{{Object: &unstructured.Unstructured{Object: body}}})
		if _, ok := errors.AsType[Errors](err); err != nil && (!ok || ClassOf(err) != Permanent || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v", err)
		}
		for _, o := range objects {
			if o.hash == "" || o.ref.Name == "" || o.ref.Namespace == "" {
				t.Errorf("%+v", o)
			}
		}
	})
}
