// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verbs are what the deployer does with objects that a component keeps.
var verbs = []string{"create", "delete", "get", "list", "patch", "watch"}

// replaceVerb is needed for strategies that replace objects.
var errKindsUnknown = errors.New("the kinds of its objects are not known before a run; announce them with WithKinds")

// RBAC returns the rights that the graph needs in the target cluster, as few rules as possible in a fixed order. They
// are the rights for the kinds of objects that are known, and those that a Ruler returns. Resource names are guessed
// from kinds, as Kubernetes itself does where it cannot look them up. The error joins the components whose rights
// cannot be known. The rules are then those of the others.
func (g *Graph) RBAC() ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	var errs []error
	for i := range g.nodes {
		node := &g.nodes[i]
		ruler, ok := node.resource.(Ruler)
		if !ok {
			errs = append(errs, fmt.Errorf("component %s: it does not say what rights it needs", node.component))
			continue
		}
		own, err := ruler.Rules()
		if err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", node.component, err))
		}
		rules = append(rules, own...)
	}
	return compactRules(rules), errors.Join(errs...)
}

// rulesFor returns the rights for objects of some kinds.
func rulesFor(kinds []schema.GroupVersionKind) ([]rbacv1.PolicyRule, error) {
	if len(kinds) == 0 {
		return nil, errKindsUnknown
	}
	rules := make([]rbacv1.PolicyRule, 0, len(kinds))
	for _, kind := range kinds {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{plural.Resource}, Verbs: verbs})
	}
	return rules, nil
}

// compactRules merges the resources of rules that are otherwise equal, and sorts the rules.
func compactRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	byRest := map[string]*rbacv1.PolicyRule{}
	var keys []string
	for _, rule := range rules {
		rule = *rule.DeepCopy()
		slices.Sort(rule.APIGroups)
		slices.Sort(rule.Verbs)
		key := fmt.Sprint(rule.APIGroups, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs)
		if known, found := byRest[key]; found {
			known.Resources = append(known.Resources, rule.Resources...)
			continue
		}
		byRest[key] = &rule
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out := make([]rbacv1.PolicyRule, 0, len(keys))
	for _, key := range keys {
		rule := byRest[key]
		slices.Sort(rule.Resources)
		rule.Resources = slices.Compact(rule.Resources)
		out = append(out, *rule)
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int {
		return cmp.Compare(strings.Join(a.APIGroups, ","), strings.Join(b.APIGroups, ","))
	})
	return out
}
