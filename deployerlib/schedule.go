// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lsv1helper "github.com/gardener/landscaper/apis/core/v1alpha1/helper"

	"github.com/deployerkit/deployerkit/contract"
)

// Priorities in the queue: the highest goes first. They are set on every
// requeue, because the queue keeps the old one otherwise.
const (
	priorityOffered  = 200 // items that waited for a worker and hold one
	priorityUser     = 100 // deletions and what a user asked for by annotation
	priorityJob      = 0
	priorityPeriodic = -50
)

const (
	freeImmediate = 9 // immediate requeues in a row before they are slowed down
	immediateMin  = 100 * time.Millisecond
	immediateMax  = 5 * time.Second
)

// priorityOf is the priority of an event about an item.
func priorityOf(di *lsv1alpha1.DeployItem) int {
	operations := []lsv1alpha1.Operation{
		contract.AbortOperation, lsv1alpha1.ForceReconcileOperation, lsv1alpha1.ReconcileOperation, lsv1alpha1.TestReconcileOperation,
	}
	if di.DeletionTimestamp != nil {
		return priorityUser
	}
	for _, op := range operations {
		if lsv1helper.HasOperation(di.ObjectMeta, op) {
			return priorityUser
		}
	}
	return priorityJob
}

// priority is that of the next pass. A retry is not urgent, so that an item
// that fails for ever cannot starve the others.
func (c *cycle) priority(p passed) int {
	switch {
	case c.base == nil || !c.decision.Due || c.decision.Background:
		return priorityPeriodic
	case p.failure:
		return priorityJob
	}
	priority := priorityOf(c.base)
	if hooks := p.result.Priority; hooks != nil {
		priority = max(priority, *hooks)
	}
	return priority
}

// immediateDelay is the delay of an attempt that is due at once: none, until too many come in a row.
func immediateDelay(inARow int) time.Duration {
	over := inARow - freeImmediate
	if over <= 0 {
		return 0
	}
	wait := immediateMin
	for range over - 1 {
		if wait *= 2; wait >= immediateMax {
			return immediateMax
		}
	}
	return wait
}
