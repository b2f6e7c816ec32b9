// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"
	"hash/fnv"
)

// MaxShards is the maximum number of shards.
const MaxShards = 100

// Shard restricts a deployer to the items of some namespaces, so that several processes can share the items of a type.
// Each namespace belongs to exactly one of Count shards. The zero value contains all namespaces.
//
// A Shard does not prevent processes with different values of Count from processing the same item. The programs of
// package deployermain prevent this. Other programs must stop all processes before they change Count.
type Shard struct {
	// Index is the number of the shard, from 0 to Count-1.
	Index int
	// Count is the number of shards, at most MaxShards. There are no shards if it is 0 or 1.
	Count int
}

// Contains reports whether the items of a namespace belong to the shard.
func (s Shard) Contains(namespace string) bool {
	return s.Count <= 1 || getShardIndex(namespace, s.Count) == s.Index
}

// validate returns an error if the shard does not exist.
func (s Shard) validate() error {
	if s.Count < 0 || s.Count > MaxShards {
		return fmt.Errorf("shard.count %d: must be at least 0 and at most %d", s.Count, MaxShards)
	}
	if s.Index < 0 || s.Index >= max(s.Count, 1) {
		return fmt.Errorf("shard.index %d: must be at least 0 and less than the number of shards, %d", s.Index, max(s.Count, 1))
	}
	return nil
}

// getShardIndex returns the shard of a namespace. It is a jump consistent hash (Lamping and Veach, 2014): if the number
// of shards grows from n to n+1, 1 of n+1 namespaces moves, and each of them to the new shard.
func getShardIndex(namespace string, count int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace)) // never fails
	key, index, next := h.Sum64(), 0, 0
	for next < count {
		index = next
		key = key*2862933555777941757 + 1
		next = int(float64(index+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return index
}
