// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/managed"
)

func TestSlots(t *testing.T) {
	woken := make(chan types.UID, 10)
	s := newSlots(OperationLimits{PerTarget: 2, Total: 3}, func(uid types.UID) { woken <- uid })
	first, second := &managed.Cluster{}, &managed.Cluster{}
	take := func(item types.UID, target *managed.Cluster, want string) {
		t.Helper()
		if reason := s.take(item, target); (reason == "") != (want == "") || !strings.Contains(reason, want) {
			t.Fatalf("take(%s): got %q, want %q", item, reason, want)
		}
	}
	expectWoken := func(want types.UID) {
		t.Helper()
		select {
		case uid := <-woken:
			if uid != want {
				t.Fatalf("%s was woken up, want %s", uid, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not woken up", want)
		}
	}
	take("a", first, "")
	take("b", first, "")
	take("c", first, "fewer than 2 operations are under way in the target")
	take("c", first, "fewer than 2")
	take("a", first, "") // the next operation of the same item
	take("d", second, "")
	take("e", second, "fewer than 3 operations are under way")
	s.release("unknown")
	s.release("a")
	expectWoken("c")
	expectWoken("e")
	take("c", first, "")
	take("e", second, "fewer than 3")
	s.release("e") // the item is forgotten while it waits
	s.release("b")
	select {
	case uid := <-woken:
		t.Fatalf("%s was woken up although it no longer waits", uid)
	case <-time.After(50 * time.Millisecond):
	}
}
