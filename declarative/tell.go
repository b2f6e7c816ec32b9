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

// These are conditions of deploy items. Each exists only while it is true.
const (
	// ConditionChildMissing names missing children that the handler wants to keep as they are.
	ConditionChildMissing lsv1alpha1.ConditionType = "ChildMissing"
	// ConditionUnstableHandler names the fields of children that the handler sets to another value each time.
	ConditionUnstableHandler lsv1alpha1.ConditionType = "UnstableHandler"
)

// maxNamed bounds how many children or fields a condition names.
const maxNamed = 5

// condition sets a condition, in memory. An empty message removes it.
func (r *run) condition(t lsv1alpha1.ConditionType, reason, message string) {
	conditions := &r.item.Status.Conditions
	if message == "" {
		*conditions = contract.RemoveCondition(*conditions, t)
		return
	}
	*conditions = contract.SetCondition(*conditions, t, lsv1alpha1.ConditionTrue, reason, contract.OneLine(message, maxReason), r.deployer.now())
}

// named lists some names.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// tellMissing reports the missing children that the handler wants to keep as they are.
func (r *run) tellMissing(desired []apply.Desired, children Children) {
	there := map[apply.Ref]bool{}
	for _, child := range children {
		there[child.Ref()] = true
	}
	var missing []string
	for _, one := range desired {
		ref := apply.RefOf(one.Object)
		whole := ref
		whole.Namespace = "" // only the target knows that a kind has none
		if one.Policy == apply.Retain && !there[ref] && !there[whole] {
			missing = append(missing, ref.String())
		}
	}
	message := ""
	if len(missing) > 0 {
		message = "to be kept as they are, but not there or not this item's, and not created from a name alone: " + named(missing)
	}
	r.condition(ConditionChildMissing, "NotThere", message)
}

// tellUnstable warns about a handler whose responses change without reason, and slows the item down.
func (r *run) tellUnstable(found unstable) bool {
	r.memory.slowDown(found.Delay)
	if len(found.Paths) == 0 {
		r.condition(ConditionUnstableHandler, "", "")
		return false
	}
	message := "the handler changes without any reason: " + named(found.Paths)
	if before := contract.GetCondition(r.item.Status.Conditions, ConditionUnstableHandler); before == nil || before.Message != message {
		r.up.Event(nil, corev1.EventTypeWarning, string(ConditionUnstableHandler), message)
	}
	r.condition(ConditionUnstableHandler, "DifferentAnswers", message)
	return true
}

// owns returns a function that reports which children get a reference to the item, namely those in its own cluster and
// namespace. It returns nil if none do.
func (r *run) owns(ctx context.Context) (func(apply.Ref) bool, error) {
	if r.deployer.options.Tracking == nil || !r.deployer.options.Tracking.OwnerReference {
		return nil, nil
	}
	cluster, err := r.up.Cluster.UID(ctx)
	if err != nil || cluster != r.up.Owner.Landscape {
		return nil, err
	}
	return func(ref apply.Ref) bool {
		mapping, err := r.up.Cluster.Mapping(ref.GVK())
		namespaced := err == nil && mapping != nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
		return namespaced && ref.Namespace == r.item.Namespace
	}, nil
}
