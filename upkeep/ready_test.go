// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/readiness"
)

// TestStateless: what is not looked at would be ready whatever is in it.
func TestStateless(t *testing.T) {
	for kind := range stateless {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(kind.WithVersion("v1"))
		if result := readiness.Of(obj); !result.Ready() {
			t.Errorf("%s is not ready as soon as it exists: %s", kind, result.Reason)
		}
	}
}
