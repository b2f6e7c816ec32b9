// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"hash/maphash"
	"strconv"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// fingerprint covers what wakes an item when it changes: its metadata without
// resourceVersion and managedFields, generation, phase and job IDs. Our own
// progress (errors, conditions, provider status) is not in it, so that a
// failing item is not woken by its own error.
type fingerprint struct {
	hash  uint64
	valid bool
}

var printSeed = maphash.MakeSeed()

// printOf computes the fingerprint of an item.
func printOf(di *lsv1alpha1.DeployItem) fingerprint {
	var h maphash.Hash
	h.SetSeed(printSeed)
	put := func(texts ...string) {
		for _, text := range texts {
			_, _ = h.WriteString(text)
			_ = h.WriteByte(0)
		}
	}
	put(string(di.UID), strconv.FormatInt(di.Generation, 10), string(di.Status.Phase), di.Status.JobID, di.Status.JobIDFinished)
	if di.DeletionTimestamp != nil {
		put("deleting")
	}
	put(di.Finalizers...)
	for _, owner := range di.OwnerReferences {
		put(string(owner.UID))
	}
	return fingerprint{hash: h.Sum64() ^ mapPrint("labels", di.Labels) ^ mapPrint("annotations", di.Annotations), valid: true}
}

// mapPrint hashes a map independent of its order.
func mapPrint(kind string, m map[string]string) uint64 {
	var sum uint64
	for k, v := range m {
		sum += maphash.String(printSeed, kind+"\x00"+k+"\x00"+v)
	}
	return sum
}
