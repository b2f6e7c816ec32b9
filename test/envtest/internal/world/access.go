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

// Grant grants rights to a user and waits until they are in force. If namespace is empty, the rights apply to the whole
// cluster. The config must be that of an administrator.
func Grant(ctx context.Context, config *rest.Config, user, namespace string, rules ...rbacv1.PolicyRule) {
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
	AwaitRights(ctx, c, user, namespace, rules...)
}

// AwaitRights waits until a user has all rights that the rules grant. The API server applies new roles and bindings
// with a delay. Until then, it rejects requests that need these rights.
func AwaitRights(ctx context.Context, c client.Client, user, namespace string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	for _, attributes := range attributesOf(namespace, rules) {
		Eventually(func(g Gomega) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes}}
			g.Expect(c.Create(ctx, review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(BeTrue(), "%s: %+v", user, attributes)
		}).WithContext(ctx).WithTimeout(Patience).Should(Succeed())
	}
}

// attributesOf converts the rules to the attributes of access reviews, one for each right.
func attributesOf(namespace string, rules []rbacv1.PolicyRule) (out []authorizationv1.ResourceAttributes) {
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
