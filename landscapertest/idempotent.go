// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

// VerifyIdempotent calls a patch function twice on each object and fails the test if the second call changes the object
// again. A patch function must be idempotent because it is called again after a conflict. Pass objects in all relevant
// states, for example with and without labels. Without objects, the test fails. The function receives copies, so the
// objects are not changed.
func VerifyIdempotent(t testing.TB, fn patch.Func, objects ...client.Object) {
	t.Helper()
	if len(objects) == 0 {
		t.Errorf("VerifyIdempotent needs at least one object")
	}
	p := &patch.Patch{}
	p.Append(fn)
	for i, obj := range objects {
		once, err := p.ApplyToCopy(obj)
		if err != nil {
			t.Errorf("object %d: first call: %v", i, err)
			continue
		}
		twice, err := p.ApplyToCopy(once)
		if err != nil {
			t.Errorf("object %d: second call: %v", i, err)
			continue
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("object %d: a second call of the function changes the object again (-once +twice):\n%s", i, diff)
		}
	}
}
