// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/patch"
)

// replaceObject deletes the object and creates another object with the same name.
func replaceObject(ctx context.Context, obj *unstructured.Unstructured) {
	direct := newClient(cfg)
	Expect(direct.Delete(ctx, obj.DeepCopy())).To(Succeed())
	fresh := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"n": int64(1)}}}
	fresh.SetGroupVersionKind(obj.GroupVersionKind())
	fresh.SetNamespace(obj.GetNamespace())
	fresh.SetName(obj.GetName())
	Expect(direct.Create(ctx, fresh)).To(Succeed())
}

// userWith returns a client of a user who has the given verbs for both kinds and for their status.
func userWith(ctx context.Context, name string, verbs ...string) client.Client {
	direct := newClient(cfg)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if len(verbs) > 0 {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{"patch.example.org"}, Resources: []string{"aparts", "aparts/status", "wholes"}, Verbs: verbs,
		}}
	}
	Expect(direct.Create(ctx, role)).To(Succeed())
	Expect(direct.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(direct.Delete(ctx, role)).To(Succeed())
		Expect(direct.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	})
	user := rest.CopyConfig(cfg)
	user.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c := newClient(user)
	probe := create(ctx, apart)
	Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(probe), probe) }).Should(Succeed(), "the role is not in force")
	return c
}

var _ = Describe("Objects with the same name", func() {
	for _, k := range []struct {
		parts string
		combination
	}{{"the body", combination{bodyDict: true}}, {"the status", combination{statusDict: true}}, {"the body and the status", combination{bodyDict: true, statusDict: true}}, {"the body and the status with functions", combination{bodyFunc: true, statusFunc: true}}} {
		It("a patch of "+k.parts+" does not change an object with another UID [F20]", func(ctx SpecContext) {
			for _, kind := range []string{apart, whole} {
				obj := create(ctx, kind)
				replaceObject(ctx, obj)
				before := read(ctx, obj)
				result, err := k.patch().Apply(ctx, c, obj, patch.WithStatusSubresource(kind == apart))
				Expect(err).NotTo(HaveOccurred())
				Expect(result.Gone).To(BeTrue())
				Expect(read(ctx, obj)).To(Equal(before))
			}
		})
	}
})

var _ = Describe("Rights for a patch", func() {
	It("a client that may only update sends the raw object [F59]", func(ctx SpecContext) {
		user := userWith(ctx, "updater", "get", "update")
		for _, kind := range []string{apart, whole} {
			for bits := range 16 {
				k := combination{bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0}
				obj := create(ctx, kind)
				p := &patch.Patch{}
				p.Spec().In("free").Set("unknown", "to Go types")
				_, err := p.Apply(ctx, c, obj)
				Expect(err).NotTo(HaveOccurred())
				want, err := k.patch().ApplyTo(obj.Object)
				Expect(err).NotTo(HaveOccurred())
				result, err := k.patch().Apply(ctx, user, obj, patch.WithStatusSubresource(kind == apart))
				Expect(err).NotTo(HaveOccurred())
				stored := read(ctx, obj)
				Expect(stored["spec"]).To(Equal(want["spec"]))
				Expect(stored["status"]).To(Equal(want["status"]))
				Expect(result.Reads).To(BeNumerically("<=", len(k.listRequests(kind))), "the patch needs at most one read for each write")
			}
		}
	})

	It("a client that may neither patch nor update receives an error that names the resource [F59]", func(ctx SpecContext) {
		user := userWith(ctx, "reader", "get")
		for _, k := range []combination{{bodyDict: true}, {statusFunc: true}} {
			_, err := k.patch().Apply(ctx, user, create(ctx, apart), patch.WithStatusSubresource(true))
			rights, ok := errors.AsType[*patch.RightsError](err)
			Expect(ok).To(BeTrue(), "the error is %v", err)
			Expect(rights.Resource).To(HavePrefix(apart))
		}
	})
})

var _ = Describe("Limits of the API server", func() {
	It("a patch stays below the maximum number of operations [F16]", func(ctx SpecContext) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "t-"}, Data: map[string]string{}}
		for i := range 25000 {
			cm.Data[fmt.Sprint("key-", i)] = "x"
		}
		Expect(newClient(cfg).Create(ctx, cm)).To(Succeed())
		p := &patch.Patch{}
		p.Append(patch.Typed(func(cm *corev1.ConfigMap) error {
			for key := range cm.Data {
				if key[len(key)-1]%2 == 0 {
					cm.Data[key] = "y"
				}
			}
			return nil
		}))
		_, err := p.Apply(ctx, c, cm)
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(HaveLen(25000))
		Expect(cm.Data).To(ContainElement("y"))
	})
})
