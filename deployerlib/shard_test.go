// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// findShard returns the shard of a namespace, and fails the test unless exactly one shard contains the namespace.
func findShard(t *testing.T, namespace string, count int) int {
	t.Helper()
	found := -1
	for index := range count {
		if !(deployerlib.Shard{Index: index, Count: count}).Contains(namespace) {
			continue
		}
		if found >= 0 {
			t.Fatalf("namespace %s belongs to the shards %d and %d of %d", namespace, found, index, count)
		}
		found = index
	}
	if found < 0 {
		t.Fatalf("namespace %s belongs to none of %d shards", namespace, count)
	}
	return found
}

func TestShard(t *testing.T) {
	namespaces := make([]string, 5000)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("project-%d", i)
	}

	t.Run("each namespace belongs to exactly one shard, and the shards have about the same size [Sh1]", func(t *testing.T) {
		for _, count := range []int{1, 2, 3, 4, 10} {
			sizes := make([]int, count)
			for _, namespace := range namespaces {
				sizes[findShard(t, namespace, count)]++
			}
			for index, size := range sizes {
				if want := len(namespaces) / count; size < want*85/100 || size > want*115/100 {
					t.Errorf("shard %d of %d: want about %d namespaces, got %d", index, count, want, size)
				}
			}
		}
	})

	t.Run("an additional shard receives namespaces, and all other namespaces keep their shards [Sh1]", func(t *testing.T) {
		moved := 0
		for _, namespace := range namespaces {
			before, after := findShard(t, namespace, 4), findShard(t, namespace, 5)
			if before != after {
				moved++
				if after != 4 {
					t.Fatalf("namespace %s: want it in shard %d or 4, got %d", namespace, before, after)
				}
			}
		}
		if want := len(namespaces) / 5; moved < want*85/100 || moved > want*115/100 {
			t.Errorf("want about %d namespaces to move, got %d", want, moved)
		}
	})

	t.Run("the shard of a namespace is the same in each version of the library [Sh1]", func(t *testing.T) {
		for namespace, want := range map[string]int{"default": 3, "demo": 2, "garden-core": 0, "": 1} {
			if got := findShard(t, namespace, 4); got != want {
				t.Errorf("namespace %q: want shard %d of 4, got %d", namespace, want, got)
			}
		}
	})

	t.Run("a shard that does not exist is an error [Sh2]", func(t *testing.T) {
		for shard, want := range map[deployerlib.Shard]string{
			{Index: 4, Count: 4}:   "shard.index 4: must be at least 0 and less than the number of shards, 4",
			{Index: -1, Count: 4}:  "shard.index -1",
			{Index: 1}:             "shard.index 1",
			{Count: -1}:            "shard.count -1: must be at least 0 and at most 100",
			{Index: 0, Count: 101}: "shard.count 101",
		} {
			args := mock.Args(nil)
			args.Shard = shard
			args.Default()
			if err := args.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: want an error with %q, got %v", shard, want, err)
			}
		}
		args := mock.Args(nil)
		args.Shard = deployerlib.Shard{Index: 99, Count: 100}
		args.Default()
		if err := args.Validate(); err != nil {
			t.Errorf("the last of the maximum number of shards: want no error, got %v", err)
		}
	})
}
