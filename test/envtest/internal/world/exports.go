// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VerifyExportRestored changes the export Secret of an item and then deletes it, as another client may do. It expects
// that the next job restores the Secret each time. The function `again` starts a job and waits for its end.
func (w *World) VerifyExportRestored(ctx context.Context, name string, again func(context.Context, string) *lsv1alpha1.DeployItem) {
	w.t.Helper()
	g := NewWithT(w.t)
	read := func() *corev1.Secret {
		secret := &corev1.Secret{}
		g.Expect(w.Client.Get(ctx, w.Key(name+"-export"), secret)).To(Succeed(), "read the export Secret")
		return secret
	}
	want := read().Data
	g.Expect(want).NotTo(BeEmpty())
	for what, damage := range map[string]func(*corev1.Secret) error{
		"changed": func(s *corev1.Secret) error {
			s.Data = map[string][]byte{lsv1alpha1.DataObjectSecretDataKey: []byte("changed: by hand")}
			return w.Client.Update(ctx, s, client.FieldOwner("kubectl-edit"))
		},
		"deleted": func(s *corev1.Secret) error { return w.Client.Delete(ctx, s) },
	} {
		g.Expect(damage(read())).To(Succeed())
		again(ctx, name)
		g.Expect(read().Data).To(Equal(want), "the Secret that was %s, after the next job", what)
	}
}
