// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// everything contains values with which the charts render all rights.
const everything = "deployer: {targets: {enableOIDC: true, enableSelf: true}}"

// listRules returns the rules of all roles of the given kind. The keys are the names of the roles.
func listRules(t *testing.T, r *helm.Rendered, kind string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	out := map[string][]rbacv1.PolicyRule{}
	for _, object := range all(r, kind) {
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		out[name] = role.Rules
	}
	return out
}

// readDocumentedRules returns the rules in the rbac.yaml of a deployer. The keys are the names of the roles.
func readDocumentedRules(t *testing.T, chart string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(helm.Root(), "deployers", strings.TrimSuffix(chart, "-deployer"), "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]rbacv1.PolicyRule{}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(document, role); err != nil {
			t.Fatal(err)
		}
		if role.Name != "" {
			out[strings.TrimPrefix(role.Name, "deployerkit:"+chart)] = role.Rules
		}
	}
	return out
}

// allRights returns values with which a chart renders all rights.
func allRights(chart string) string {
	if chart != mockChart {
		return everything
	}
	return ""
}

func TestRights(t *testing.T) {
	eachChart(t, func(t *testing.T, chart string) {
		r := render(t, chart, allRights(chart))
		want := readDocumentedRules(t, chart)
		t.Run("the rights are those of rbac.yaml [O39]", func(t *testing.T) {
			got := map[string][]rbacv1.PolicyRule{}
			for name, rules := range listRules(t, r, "ClusterRole") {
				got[strings.ReplaceAll(strings.TrimPrefix(name, "ls-system:rel-"+chart), ":", "-")] = rules
			}
			for name, rules := range listRules(t, r, "Role") {
				got[strings.TrimPrefix(name, "ls-system/rel-"+chart)] = rules
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-rbac.yaml +chart:\n%s", diff)
			}
		})
		t.Run("the rights for the election are a Role in the namespace of the release [O42]", func(t *testing.T) {
			got := listRules(t, r, "Role")
			if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"ls-system/rel-" + chart + "-leader-election": want["-leader-election"]}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for name, rules := range listRules(t, r, "ClusterRole") {
				if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") }) {
					t.Errorf("%s is about leases", name)
				}
			}
		})
		t.Run("the rights with another cluster are only those for the election [O43]", func(t *testing.T) {
			other := render(t, chart, "deployer: {landscaperClusterKubeconfig: {secretRef: s}}")
			if diff := cmp.Diff(listRules(t, r, "Role"), listRules(t, other, "Role")); diff != "" || len(all(other, "RoleBinding")) != 1 {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
		t.Run("a release with only the rights contains those for the other cluster [O44]", func(t *testing.T) {
			only := render(t, chart, "rbac: {landscaperClusterOnly: true}")
			if diff := cmp.Diff(listRules(t, render(t, chart, ""), "ClusterRole"), listRules(t, only, "ClusterRole")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, object := range only.Objects {
				if !slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}, object.GetKind()) {
					t.Errorf("there is %s %s", object.GetKind(), object.GetName())
				}
			}
		})
		t.Run("the rights for one namespace are a Role in this namespace [O46]", func(t *testing.T) {
			r := render(t, chart, "deployer: {watchNamespace: shop}")
			var inCluster []rbacv1.PolicyRule
			for _, rules := range listRules(t, r, "ClusterRole") {
				inCluster = append(inCluster, rules...)
			}
			inNamespace := listRules(t, r, "Role")["shop/rel-"+chart]
			if diff := cmp.Diff(len(want[""]), len(inCluster)+len(inNamespace)); diff != "" || len(inNamespace) == 0 {
				t.Errorf("not all rules are there: %s", diff)
			}
			for _, rule := range inCluster {
				if diff := cmp.Diff(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}, rule); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			if bindings := all(r, "RoleBinding"); len(bindings) != 2 {
				t.Errorf("there are %d bindings", len(bindings))
			}
		})
	})
}

// TestRightsAreMinimal checks that no role grants more rights than those listed here. The list has to be changed for
// each new right.
func TestRightsAreMinimal(t *testing.T) {
	// covered contains the rights that Landscaper's own roles grant since v0.117.
	covered := map[string]string{
		"deployitems.landscaper.gardener.cloud": "get list watch update", "deployitems/status.landscaper.gardener.cloud": "get list watch update",
		"targets.landscaper.gardener.cloud": "get list watch", "contexts.landscaper.gardener.cloud": "get list watch",
		"events": "create get watch patch update", "namespaces": "get list watch", "pods": "get list watch",
		"secrets": "create get list watch update delete", "serviceaccounts/token": "create",
	}
	// added contains the rights that our roles grant in addition.
	added := map[string]string{
		"deployitems.landscaper.gardener.cloud": "patch", "deployitems/status.landscaper.gardener.cloud": "patch",
		"leases.coordination.k8s.io": "get create update", "events.events.k8s.io": "create patch", "tokenreviews.authentication.k8s.io": "create",
	}
	eachChart(t, func(t *testing.T, chart string) {
		r := render(t, chart, allRights(chart))
		t.Run("the rights are those that the program needs, and Landscaper's rights cover them [O40, O41]", func(t *testing.T) {
			for _, kind := range []string{"Role", "ClusterRole"} {
				for name, rules := range listRules(t, r, kind) {
					for _, right := range listRights(rules) {
						verb, resource, _ := strings.Cut(right, " ")
						if !slices.Contains(strings.Fields(covered[resource]), verb) && !slices.Contains(strings.Fields(added[resource]), verb) {
							t.Errorf("%s: %s is new", name, right)
						}
						if isBroad(verb, resource) {
							t.Errorf("%s: %s is too much", name, right)
						}
					}
				}
			}
		})
	})
}

// listRights returns each right as "verb resource.group".
func listRights(rules []rbacv1.PolicyRule) (out []string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(out, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
				}
			}
		}
	}
	return out
}

// isBroad reports whether a right contains a *, allows listing or watching Secrets, Pods or Namespaces, or applies to
// objects of Landscaper's own deployers.
func isBroad(verb, resource string) bool {
	lists := verb == "list" || verb == "watch"
	return strings.Contains(verb+resource, "*") || lists && slices.Contains([]string{"secrets", "pods", "namespaces"}, resource) ||
		strings.HasPrefix(resource, "syncobjects") || strings.HasPrefix(resource, "criticalproblems")
}

func TestTokenRights(t *testing.T) {
	const chart = manifestChart
	for name, test := range map[string]struct {
		values  string
		tokens  []string // names of the roles with the right to create tokens
		reviews bool
	}{
		"no token rights by default [O45]":              {"", nil, false},
		"self targets [O45]":                            {"deployer: {targets: {enableSelf: true}}", []string{"ls-system:rel-manifest-deployer:tokens"}, false},
		"OIDC targets [O45]":                            {"deployer: {targets: {enableOIDC: true}}", []string{"ls-system:rel-manifest-deployer:tokens"}, true},
		"OIDC targets with audiences [O45]":             {"deployer: {targets: {enableOIDC: true, landscaperAudiences: [a]}}", []string{"ls-system:rel-manifest-deployer:tokens"}, false},
		"token rights in some namespaces [O45]":         {"{rbac: {tokenNamespaces: [a, b]}, deployer: {targets: {enableSelf: true}}}", []string{"a/rel-manifest-deployer-tokens", "b/rel-manifest-deployer-tokens"}, false},
		"token rights in the only namespace [O45, O46]": {"deployer: {watchNamespace: a, targets: {enableSelf: true}}", []string{"a/rel-manifest-deployer-tokens"}, false},
		"no token rights in the host cluster [O43]":     {"deployer: {landscaperClusterKubeconfig: {secretRef: s}, targets: {enableOIDC: true}}", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, chart, test.values)
			var tokens []string
			reviews := false
			for _, kind := range []string{"Role", "ClusterRole"} {
				for name, rules := range listRules(t, r, kind) {
					rights := listRights(rules)
					if slices.Contains(rights, "create serviceaccounts/token") {
						tokens = append(tokens, name)
					}
					reviews = reviews || slices.Contains(rights, "create tokenreviews.authentication.k8s.io")
				}
			}
			slices.Sort(tokens)
			if diff := cmp.Diff(test.tokens, tokens); diff != "" || reviews != test.reviews {
				t.Errorf("reviews: %t; tokens: -want +got:\n%s", reviews, diff)
			}
		})
	}
}
