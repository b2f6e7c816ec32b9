// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"hash/maphash"
	"strconv"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Digest covers the parts of an item whose change leads to a reconcile: the metadata without resourceVersion and
// managedFields, the generation, the phase and the job IDs. It does not cover the progress that the library writes
// (errors, conditions, provider status). If it covered this progress, each write of an error would immediately lead to
// another attempt. The zero value is the digest of no item.
type Digest uint64

var digestSeed = maphash.MakeSeed()

// ComputeDigest computes the digest of an item.
func ComputeDigest(di *lsv1alpha1.DeployItem) Digest {
	var h maphash.Hash
	h.SetSeed(digestSeed)
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
	return Digest(max(h.Sum64()^hashMap("labels", di.Labels)^hashMap("annotations", di.Annotations), 1))
}

// hashMap hashes a map independently of its order.
func hashMap(kind string, m map[string]string) uint64 {
	var sum uint64
	for k, v := range m {
		sum += maphash.String(digestSeed, kind+"\x00"+k+"\x00"+v)
	}
	return sum
}
