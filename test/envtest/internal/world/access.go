// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GrantRules grants rights to a user and waits until they are in force. If namespace is empty, the rights apply to the
// whole cluster. The config must be that of an administrator.
func GrantRules(ctx context.Context, config *rest.Config, user, namespace string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	c := NewClient(GinkgoTB(), config)
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	var role, binding client.Object = &rbacv1.Role{Rules: rules}, &rbacv1.RoleBinding{Subjects: subjects}
	kind := "Role"
	if namespace == "" {
		role, binding, kind = &rbacv1.ClusterRole{Rules: rules}, &rbacv1.ClusterRoleBinding{Subjects: subjects}, "ClusterRole"
	}
	for _, obj := range []client.Object{role, binding} {
		obj.SetNamespace(namespace)
		obj.SetGenerateName("granted-")
	}
	Expect(c.Create(ctx, role)).To(Succeed())
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()}
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		b.RoleRef = ref
	case *rbacv1.ClusterRoleBinding:
		b.RoleRef = ref
	}
	Expect(c.Create(ctx, binding)).To(Succeed())
	WaitForRights(ctx, c, user, namespace, rules...)
}

// WaitForRights waits until a user has all rights that the rules grant. The API server applies new roles and bindings
// with a delay. Until then, it rejects requests that need these rights.
func WaitForRights(ctx context.Context, c client.Client, user, namespace string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	for _, attributes := range toAttributes(namespace, rules) {
		Eventually(func(g Gomega) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes}}
			g.Expect(c.Create(ctx, review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(BeTrue(), "%s: %+v", user, attributes)
		}).WithContext(ctx).WithTimeout(Patience).Should(Succeed())
	}
}

// toAttributes converts the rules to the attributes of access reviews, one for each right.
func toAttributes(namespace string, rules []rbacv1.PolicyRule) (out []authorizationv1.ResourceAttributes) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					for _, name := range slices.Concat(rule.ResourceNames, []string{""})[:max(1, len(rule.ResourceNames))] {
						out = append(out, authorizationv1.ResourceAttributes{
							Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: name,
						})
					}
				}
			}
		}
	}
	return out
}
