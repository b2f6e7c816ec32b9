// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func Example() {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	owner := ownership.Owner{UID: "4f1e", Landscape: "9c02", Namespace: "shop", Name: "web"}
	owner.Mark(obj)

	found, _ := ownership.GetOwner(obj)
	reborn := ownership.Owner{UID: "77aa", Landscape: "9c02", Namespace: "shop", Name: "web"}
	fmt.Println(owner.FieldManager(), "applies", obj.GetLabels())
	fmt.Println("belongs to", found, "- the restored item too:", reborn.IsSameItem(found))
	// Output:
	// deployerkit-4f1e applies map[deployerkit.dev/item:4f1e]
	// belongs to shop/web - the restored item too: true
}
