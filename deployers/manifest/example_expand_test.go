// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// If a manifest is a list, Expand returns its items.
func ExampleExpand() {
	objects, err := manifest.Expand(&runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}},
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings"}}]}`)})
	for _, object := range objects {
		fmt.Println(object.GetKind(), object.GetName(), err)
	}
	// Output:
	// Namespace shop <nil>
	// ConfigMap settings <nil>
}
