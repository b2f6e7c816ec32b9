// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"
)

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); !is(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not in time")
		}
	}
}

// TestBudgetPrefersSmallestConsumer checks that the namespace that uses the least memory comes first, and within this
// namespace the target that uses the least memory.
func TestBudgetPrefersSmallestConsumer(t *testing.T) {
	b := New("read", "", 10)
	take := func(namespace, target string, amount int64) *Claim {
		t.Helper()
		c, err := b.Acquire(t.Context(), Owner{namespace, target}, amount)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := take("evil", "a", 5), take("evil", "b", 5)
	order := make(chan string, 4)
	ask := func(namespace, target string) {
		go func() {
			if c, err := b.Acquire(t.Context(), Owner{namespace, target}, 5); err == nil {
				order <- namespace + "/" + target
				c.Release()
			}
		}()
		waitUntil(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.waiting) > 0 && b.waiting[len(b.waiting)-1].owner == Owner{namespace, target}
		})
	}
	ask("evil", "b")
	ask("evil", "c")
	ask("good", "d")
	first.Release()
	t.Run("serves the namespace that uses no memory first [F2]", func(t *testing.T) {
		if got := <-order; got != "good/d" {
			t.Errorf("%s is first", got)
		}
	})
	t.Run("then serves the target that uses no memory [F2]", func(t *testing.T) {
		if got := <-order; got != "evil/c" {
			t.Errorf("%s is second", got)
		}
	})
	second.Release()
	<-order
	waitUntil(t, func() bool { used, _ := b.GetUsage(); return used == 0 })
	if len(b.usedByOwner) != 0 || len(b.usedByNamespace) != 0 {
		t.Errorf("left behind: %v %v", b.usedByOwner, b.usedByNamespace)
	}
}
