// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// ConditionReadinessUnknown is the type of a condition of items with objects that count as ready although their status
// does not show it (see readiness.Result.IsUncertain). The message names the kinds of these objects. Other items do not
// have this condition.
const ConditionReadinessUnknown lsv1alpha1.ConditionType = "ReadinessUnknown"

// maxUncertainKinds is the maximum number of kinds that the condition ReadinessUnknown names.
const maxUncertainKinds = 20

// CheckReadiness checks by the default rules whether an object in the item's target is ready. If the result is
// uncertain (see readiness.Result.IsUncertain), CheckReadiness writes an event, but only once for each kind. Finish
// then sets the condition ReadinessUnknown.
func (r *Run) CheckReadiness(ctx context.Context, live *unstructured.Unstructured) readiness.Result {
	rules := readiness.Rules{
		Grace: r.Manager.options.StatusGrace, Now: r.Manager.rt.Clock.Now(),
		GetStatusShape: func(gvk schema.GroupVersionKind) readiness.StatusShape { return r.Cluster.GetStatusShape(ctx, gvk) },
		GetBinding:     func(claim *unstructured.Unstructured) readiness.ClaimBinding { return r.Cluster.getBinding(ctx, claim) },
	}
	result := rules.CheckObject(live)
	ref := apply.ToRef(live)
	r.checked.Store(ref, true)
	r.item.ready.setUncertain(ref, result.IsUncertain)
	if !result.IsUncertain {
		return result
	}
	kinds := r.GetOrCreateValue(uncertainKindsKey{}, func() any { return &sync.Map{} }).(*sync.Map)
	if _, reported := kinds.LoadOrStore(live.GroupVersionKind().GroupKind(), true); !reported {
		r.RecordEvent(newEventReference(ref), corev1.EventTypeWarning, "ReadinessUnknown", ref.String()+
			" counts as ready: its status has neither conditions nor observedGeneration, so use a custom readiness check")
	}
	return result
}

// uncertainKindsKey is the key under which Run.GetOrCreateValue stores the kinds for which CheckReadiness has written
// an event.
type uncertainKindsKey struct{}

// setReadinessUnknown sets or removes the condition ReadinessUnknown, in memory. The result for an object that this run
// did not check is that of an earlier run, because such an object has not changed since.
func (r *Run) setReadinessUnknown() {
	known := map[apply.Ref]bool{}
	for _, entry := range r.Inventory.Entries {
		known[entry.Ref()] = true
	}
	uncertain := r.item.ready.keepUncertain(func(ref apply.Ref) bool {
		_, checked := r.checked.Load(ref)
		return checked || known[ref]
	})
	r.Manager.setCondition(r.Item, ConditionReadinessUnknown, lsv1alpha1.ConditionTrue, "NotReported", describeUncertain(uncertain))
}

// describeUncertain returns the message of the condition ReadinessUnknown. It returns "" if there are no objects.
func describeUncertain(uncertain []apply.Ref) string {
	if len(uncertain) == 0 {
		return ""
	}
	names := []string{}
	for _, ref := range uncertain {
		names = append(names, ref.GVK().GroupKind().String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := "objects of these kinds count as ready, although their status has neither conditions nor observedGeneration: " +
		strings.Join(names[:min(len(names), maxUncertainKinds)], ", ")
	if more := len(names) - maxUncertainKinds; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return oneLine(text + "; use custom readiness checks for them")
}
