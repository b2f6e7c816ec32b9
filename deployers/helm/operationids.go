// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// operationIDs creates and recognizes the IDs with which the operations of an item mark their records.
type operationIDs struct {
	item types.UID
	job  string
}

// operationIDs returns the IDs for the current job of the item. Under the annotation revision of the contract, which has
// no job IDs, the time of the reconcile identifies the job.
func (r *run) operationIDs() operationIDs {
	job := r.Managed.Item.Status.JobID
	if began := r.Managed.Item.Status.LastReconcileTime; job == "" && began != nil {
		job = began.UTC().Format(time.RFC3339)
	}
	return operationIDs{r.Managed.Item.UID, job}
}

// next returns a new ID. It starts with digests of the item's UID and of its job.
func (ids operationIDs) next() string { return ids.jobPrefix() + strings.ToLower(rand.Text()[:10]) }

// prefix returns the prefix of all IDs of the item.
func (ids operationIDs) prefix() string { return "di-" + ids.shortDigest("") + "-" }

// jobPrefix returns the prefix of all IDs of the job.
func (ids operationIDs) jobPrefix() string {
	return ids.prefix() + ids.shortDigest(ids.job)[:8] + "-"
}

// shortDigest returns a digest that may be part of a label.
func (ids operationIDs) shortDigest(text string) string {
	return strings.ToLower(strings.NewReplacer("-", "0", "_", "1").Replace(digest(ids.item, []byte(text))[:12]))
}

// isOwn reports whether an operation of the item wrote a record.
func (ids operationIDs) isOwn(revision release.Revision) bool {
	return strings.HasPrefix(revision.Operation, ids.prefix()) && strings.HasSuffix(revision.Operation, fmt.Sprintf(".v%d", revision.Number))
}

// isOfJob reports whether an operation of the job wrote a record.
func (ids operationIDs) isOfJob(revision release.Revision) bool {
	return ids.isOwn(revision) && strings.HasPrefix(revision.Operation, ids.jobPrefix())
}
