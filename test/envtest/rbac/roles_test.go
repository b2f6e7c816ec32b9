// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// role is a Role or a ClusterRole in a file.
type role struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Rules            []rbacv1.PolicyRule
}

// readRoles reads the roles in a file.
func readRoles(file string) []role {
	GinkgoHelper()
	body, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var out []role
	for document := range strings.SplitSeq(string(body), "\n---\n") {
		one := role{}
		Expect(yaml.UnmarshalStrict([]byte(document), &one)).To(Succeed())
		if one.Kind != "" {
			out = append(out, one)
		}
	}
	Expect(out).NotTo(BeEmpty())
	return out
}

// listRights returns the rights that a role grants, one for each combination of verb and resource.
func (r *role) listRights() []right {
	var out []right
	for _, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, right{Verb: verb, Group: group, Resource: resource, Namespace: r.Metadata.Namespace, Name: name})
					}
				}
			}
		}
	}
	return out
}

// without returns a copy of the role without the right in `gone`.
func (r *role) without(gone string) role {
	out := role{Kind: r.Kind, Metadata: r.Metadata}
	for _, granted := range r.listRights() {
		if granted.String() == gone {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{granted.Group}, Resources: []string{granted.Resource}, Verbs: []string{granted.Verb}}
		if granted.Name != "" {
			rule.ResourceNames = []string{granted.Name}
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

// createRole grants the role to a user. The name of the created role contains the name of the user, because several
// specs create roles from the same file.
func (w *env) createRole(ctx context.Context, r role, user string) {
	GinkgoHelper()
	name := strings.ReplaceAll(user, ":", ".") + "." + strings.ReplaceAll(r.Metadata.Name, ":", ".")
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind, Name: name}
	who := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	var made, binding client.Object
	if r.Kind == "Role" {
		made, binding = &rbacv1.Role{Rules: r.Rules}, &rbacv1.RoleBinding{RoleRef: ref, Subjects: who}
	} else {
		made, binding = &rbacv1.ClusterRole{Rules: r.Rules}, &rbacv1.ClusterRoleBinding{RoleRef: ref, Subjects: who}
	}
	for _, obj := range []client.Object{made, binding} {
		obj.SetName(name)
		obj.SetNamespace(r.Metadata.Namespace)
		Expect(w.Client.Create(ctx, obj)).To(Succeed())
	}
	world.WaitForRights(ctx, w.Client, user, r.Metadata.Namespace, r.Rules...)
}

// allow grants a user rights in the namespace of the world. A target grants such rights to the user of its kubeconfig.
func (w *env) allow(ctx context.Context, user string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	r := role{Kind: "Role", Rules: rules}
	r.Metadata.Name, r.Metadata.Namespace = "objects", w.Namespace
	w.createRole(ctx, r, user)
}

// objects returns a rule with all verbs that a deployer uses for the objects of an item.
func objects(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}
}
