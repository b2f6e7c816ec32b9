// SPDX-License-Identifier: Apache-2.0

package memo_test

import (
	"testing"

	"github.com/deployerkit/deployerkit/internal/memo"
)

func TestMemo(t *testing.T) {
	var m memo.Memo[string, []int, string]
	if got, found := m.Get("a", nil); found {
		t.Errorf("an empty memo has %q", got)
	}
	m.Put("a", []int{1}, "one")
	if got, found := m.Get("a", []int{1}); !found || got != "one" {
		t.Errorf("got %q, %v", got, found)
	}
	if got, found := m.Get("a", []int{2}); found {
		t.Errorf("another input has the result %q", got)
	}
	m.Forget("a")
	if got, found := m.Get("a", []int{1}); found {
		t.Errorf("a forgotten key has the result %q", got)
	}
}
