// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

// Idempotent fails the test when a patch function, applied a second time, changes more than it did the
// first time: after a conflict it is called again. Give it objects in all the states that matter, for
// instance with and without labels; without objects the test fails too. The objects are not changed.
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
