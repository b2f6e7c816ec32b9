// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

// Idempotent fails the test if a patch function changes an object further when it is applied a second time, because it
// is called again after a conflict. Pass objects in all relevant states, for example with and without labels. Without
// objects the test fails. The objects are not changed.
func Idempotent(t testing.TB, fn patch.Func, objects ...client.Object) {
	t.Helper()
	if len(objects) == 0 {
		t.Errorf("Idempotent needs an object to try the function on")
	}
	p := &patch.Patch{}
	p.Append(fn)
	for i, obj := range objects {
		once, err := p.Preview(obj)
		if err != nil {
			t.Errorf("object %d: first time: %v", i, err)
			continue
		}
		twice, err := p.Preview(once)
		if err != nil {
			t.Errorf("object %d: second time: %v", i, err)
			continue
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("object %d: the function changes it again when it runs twice (-once +twice):\n%s", i, diff)
		}
	}
}
