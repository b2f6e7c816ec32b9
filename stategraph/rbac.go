// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verbs contains the RBAC verbs that the deployer needs for the objects of components.
var verbs = []string{"create", "delete", "get", "list", "patch", "watch"}

// RBAC returns the rights that the graph needs in the target cluster, as a minimal list of rules in a fixed order. It
// collects the rules from each Resource that implements RBACProvider. The resources of this package derive the rules
// from the kinds of their objects, and guess the resource names from the kinds. If the rights of some components are
// not known, RBAC returns the rules of the other components, and an error that names the components whose rights are
// not known.
func (g *Graph) RBAC() ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	var errs []error
	for i := range g.nodes {
		node := &g.nodes[i]
		provider, ok := node.resource.(RBACProvider)
		if !ok {
			errs = append(errs, fmt.Errorf("component %s: its resource is not an RBACProvider, so its rights are not known", node.component))
			continue
		}
		own, err := provider.Rules()
		if err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", node.component, err))
		}
		rules = append(rules, own...)
	}
	return mergeRules(rules), errors.Join(errs...)
}

// newRules returns rules that allow the given verbs for objects of the given kinds.
func newRules(kinds []schema.GroupVersionKind, verbs []string) ([]rbacv1.PolicyRule, error) {
	if len(kinds) == 0 {
		return nil, errors.New("the kinds of its objects are not known before a run; set them with WithKinds")
	}
	rules := make([]rbacv1.PolicyRule, 0, len(kinds))
	for _, kind := range kinds {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{plural.Resource}, Verbs: verbs})
	}
	return rules, nil
}

// mergeRules joins rules that differ only in their resources. It sorts the result, first by group.
func mergeRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
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
	return out
}
