// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
)

// These are the types of conditions that the library sets on deploy items. An item has such a condition only while the
// condition is true.
const (
	// ConditionChildMissing names children that do not exist or do not belong to the item, although the handler wants
	// to keep them unchanged.
	ConditionChildMissing lsv1alpha1.ConditionType = "ChildMissing"
	// ConditionUnstableHandler names the fields of children that the handler sets to a different value in each call.
	ConditionUnstableHandler lsv1alpha1.ConditionType = "UnstableHandler"
)

// maxNamed is the maximum number of children or fields that a condition names.
const maxNamed = 5

// setCondition sets a condition of the item. An empty message removes the condition. The item changes only in memory.
func (r *run) setCondition(condition lsv1alpha1.ConditionType, reason, message string) {
	conditions := &r.item.Status.Conditions
	if message == "" {
		*conditions = contract.RemoveCondition(*conditions, condition)
		return
	}
	*conditions = contract.SetCondition(*conditions, condition, lsv1alpha1.ConditionTrue, reason, contract.OneLine(message, maxReason), r.deployer.now())
}

// joinNames joins at most maxNamed names.
func joinNames(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// setChildMissing sets or removes ConditionChildMissing. It examines the children that the handler wants to keep
// unchanged, and reports those that do not exist or do not belong to the item.
func (r *run) setChildMissing(desired []apply.Desired, children Children) {
	there := map[apply.Ref]bool{}
	for _, child := range children {
		there[child.Ref()] = true
	}
	var missing []string
	for _, one := range desired {
		if ref := apply.ToRef(one.Object); one.Policy == apply.PolicyRetain && !there[ref] {
			missing = append(missing, ref.String())
		}
	}
	message := ""
	if len(missing) > 0 {
		message = "these children must already exist and belong to this item, because the handler returned only their names: " + joinNames(missing)
	}
	r.setCondition(ConditionChildMissing, "NotThere", message)
}

// setUnstableHandler reports whether the handler is unstable. If the handler is unstable, the method writes an event,
// sets a condition, and delays the next calls for the item.
func (r *run) setUnstableHandler(found stabilityResult) bool {
	r.memory.setDelay(found.Delay)
	if len(found.Paths) == 0 {
		r.setCondition(ConditionUnstableHandler, "", "")
		return false
	}
	message := "the handler returns different results for the same input: " + joinNames(found.Paths)
	if before := contract.GetCondition(r.item.Status.Conditions, ConditionUnstableHandler); before == nil || before.Message != message {
		r.managed.RecordEvent(nil, corev1.EventTypeWarning, string(ConditionUnstableHandler), message)
	}
	r.setCondition(ConditionUnstableHandler, "DifferentAnswers", message)
	return true
}

// isHome reports whether the target is the cluster of the item. Only children in that cluster can refer to the item as
// their owner.
func (r *run) isHome(ctx context.Context) (bool, error) {
	cluster, err := r.managed.Cluster.UID(ctx)
	return cluster == r.managed.Owner.Landscape, err
}
