// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"maps"
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
// does not show it (see readiness.Result.Guessed). The message names the kinds of these objects. Other items do not have
// this condition.
const ConditionReadinessUnknown lsv1alpha1.ConditionType = "ReadinessUnknown"

// maxGuessedKinds is the maximum number of kinds that the condition ReadinessUnknown names.
const maxGuessedKinds = 20

// Judge checks by the default rules whether an object in the item's target is ready. If the result is uncertain (see
// readiness.Result.Guessed), Judge writes an event, but only once for each kind. Finished then sets the condition
// ReadinessUnknown.
func (r *Run) Judge(ctx context.Context, live *unstructured.Unstructured) readiness.Result {
	rules := readiness.Rules{
		Grace: r.Keeper.options.StatusGrace, Now: r.Keeper.rt.Clock.Now(),
		StatusOf:  func(gvk schema.GroupVersionKind) readiness.StatusShape { return r.Cluster.StatusOf(ctx, gvk) },
		BindingOf: func(claim *unstructured.Unstructured) readiness.ClaimBinding { return r.Cluster.bindingOf(ctx, claim) },
	}
	result := rules.Of(live)
	ref := apply.RefOf(live)
	r.guesses.add(ref, result.Guessed)
	if !result.Guessed {
		return result
	}
	kinds := r.Value(guessedKinds{}, func() any { return &sync.Map{} }).(*sync.Map)
	if _, reported := kinds.LoadOrStore(live.GroupVersionKind().GroupKind(), true); !reported {
		r.Event(related(ref), corev1.EventTypeWarning, "ReadinessUnknown", ref.String()+
			" counts as ready: its status has neither conditions nor observedGeneration, so use a custom readiness check")
	}
	return result
}

// guessedKinds is the key under which Run.Value stores the kinds for which Judge has written an event.
type guessedKinds struct{}

// guesses records for which objects the result of Judge was uncertain.
type guesses struct {
	mu  sync.Mutex
	all map[apply.Ref]bool
}

func (g *guesses) add(ref apply.Ref, guessed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[apply.Ref]bool{}
	}
	g.all[ref] = guessed
}

// reportGuesses sets or removes the condition ReadinessUnknown, in memory. The result for an object that this run did
// not check is that of an earlier run, because such an object has not changed since.
func (r *Run) reportGuesses() {
	r.guesses.mu.Lock()
	defer r.guesses.mu.Unlock()
	uncertain := map[apply.Ref]bool{}
	for _, entry := range r.Inventory.Entries {
		if ref := entry.Ref(); r.item.ready.isGuessed(ref) {
			uncertain[ref] = true
		}
	}
	maps.Copy(uncertain, r.guesses.all)
	maps.DeleteFunc(uncertain, func(_ apply.Ref, guessed bool) bool { return !guessed })
	r.item.ready.setGuessed(uncertain)
	r.Keeper.setCondition(r.Item, ConditionReadinessUnknown, lsv1alpha1.ConditionTrue, "NotReported", guessedText(uncertain))
}

// guessedText returns the message of the condition ReadinessUnknown. It returns "" if there are no objects.
func guessedText(uncertain map[apply.Ref]bool) string {
	if len(uncertain) == 0 {
		return ""
	}
	names := []string{}
	for ref := range uncertain {
		names = append(names, ref.GVK().GroupKind().String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := "objects of these kinds count as ready, although their status has neither conditions nor observedGeneration: " +
		strings.Join(names[:min(len(names), maxGuessedKinds)], ", ")
	if more := len(names) - maxGuessedKinds; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return oneLine(text + "; use custom readiness checks for them")
}
