// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

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

// condition sets a condition of the item. An empty message removes the condition. The item changes only in memory.
func (r *run) condition(condition lsv1alpha1.ConditionType, reason, message string) {
	conditions := &r.item.Status.Conditions
	if message == "" {
		*conditions = contract.RemoveCondition(*conditions, condition)
		return
	}
	*conditions = contract.SetCondition(*conditions, condition, lsv1alpha1.ConditionTrue, reason, contract.OneLine(message, maxReason), r.deployer.now())
}

// named joins at most maxNamed names.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// missing sets or removes ConditionChildMissing. It examines the children that the handler wants to keep unchanged, and
// reports those that do not exist or do not belong to the item.
func (r *run) missing(desired []apply.Desired, children Children) {
	there := map[apply.Ref]bool{}
	for _, child := range children {
		there[child.Ref()] = true
	}
	var missing []string
	for _, one := range desired {
		ref := apply.RefOf(one.Object)
		whole := ref
		whole.Namespace = "" // the kind may be cluster-scoped; this is not known without a request
		if one.Policy == apply.Retain && !there[ref] && !there[whole] {
			missing = append(missing, ref.String())
		}
	}
	message := ""
	if len(missing) > 0 {
		message = "these children must already exist and belong to this item, because the handler returned only their names: " + named(missing)
	}
	r.condition(ConditionChildMissing, "NotThere", message)
}

// unstable reports whether the handler is unstable. If the handler is unstable, the method writes an event, sets a
// condition, and delays the next calls for the item.
func (r *run) unstable(found unstable) bool {
	r.memory.slowDown(found.Delay)
	if len(found.Paths) == 0 {
		r.condition(ConditionUnstableHandler, "", "")
		return false
	}
	message := "the handler returns different results for the same input: " + named(found.Paths)
	if before := contract.GetCondition(r.item.Status.Conditions, ConditionUnstableHandler); before == nil || before.Message != message {
		r.up.Event(nil, corev1.EventTypeWarning, string(ConditionUnstableHandler), message)
	}
	r.condition(ConditionUnstableHandler, "DifferentAnswers", message)
	return true
}

// owns returns a function that reports whether a child gets an owner reference to the item. Only children in the item's
// own cluster and namespace get an owner reference. The function is nil if no child gets one.
func (r *run) owns(ctx context.Context) (func(apply.Ref) bool, error) {
	if r.deployer.options.Tracking == nil || !r.deployer.options.Tracking.OwnerReference {
		return nil, nil
	}
	cluster, err := r.up.Cluster.UID(ctx)
	if err != nil || cluster != r.up.Owner.Landscape {
		return nil, err
	}
	return owned(r.up.Cluster.RESTMapper(), r.item), nil
}

// owned returns a function that reports whether a child is in the item's namespace. The cluster of the child must be
// the item's own cluster. The mapper of this cluster determines whether the child has a namespace at all.
func owned(mapper meta.RESTMapper, item *lsv1alpha1.DeployItem) func(apply.Ref) bool {
	return func(ref apply.Ref) bool {
		mapping, err := mapper.RESTMapping(ref.GVK().GroupKind(), ref.GVK().Version)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && ref.Namespace == item.Namespace
	}
}
