// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Keys with the prefix of this library are reserved. A deployer refuses manifests that contain them.
func ExampleReserved() {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	ownership.Owner{UID: "4f1e", Landscape: "9c02", Namespace: "shop", Name: "web"}.Stamp(object)
	fmt.Println(ownership.Reserved(object.Object))
	// Output:
	// [metadata.annotations[deployerkit.dev/item-name] metadata.annotations[deployerkit.dev/item-namespace] metadata.annotations[deployerkit.dev/landscape] metadata.labels[deployerkit.dev/item]]
}
