// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
)

// spoiler stands between a deployer and the API server. Parts that are nil change nothing.
type spoiler struct {
	// sees changes an item that the deployer reads.
	sees func(di item)
	// stores changes the status that the deployer is about to write.
	stores func(di item)
	// keeps changes the rest of an item that the deployer is about to write.
	keeps func(di item)
	// finds replaces the response for a Target.
	finds func(err error, target *lsv1alpha1.Target) error
	// uninstalls replaces the deletion of what is deployed. Nothing is deleted then.
	uninstalls func() error
	// halves splits the write that ends a job in two.
	halves bool
}

// client is the client of a spoiled deployer.
func (s *spoiler) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{Get: s.get, Patch: s.patch, SubResourcePatch: s.patchStatus, Delete: s.delete})
}

func (s *spoiler) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Get(ctx, key, obj, opts...)
	switch o := obj.(type) {
	case item:
		if err == nil {
			s.look(o)
		}
	case *lsv1alpha1.Target:
		if s.finds != nil {
			return s.finds(err, o)
		}
	}
	return err
}

func (s *spoiler) look(di item) {
	if s.sees != nil {
		s.sees(di)
	}
}

func (s *spoiler) patch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	di := obj.(item)
	if s.keeps != nil {
		s.keeps(di)
	}
	err := c.Patch(ctx, di, patch, opts...)
	s.look(di)
	return err
}

func (s *spoiler) patchStatus(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	di := obj.(item)
	if s.stores != nil {
		s.stores(di)
	}
	if s.halves && contract.IsFinal(di.Status.Phase) {
		if err := firstHalf(ctx, c, di); err != nil {
			return err
		}
		patch = client.RawPatch(types.MergePatchType, []byte(`{"status":{"jobIDFinished":"`+di.Status.JobID+`","deployer":{"version":"1"}}}`))
	}
	err := c.SubResource(sub).Patch(ctx, di, patch, opts...)
	s.look(di)
	return err
}

// firstHalf writes the phase of an item, and something that the second half reverts.
func firstHalf(ctx context.Context, c client.Client, di item) error {
	body := []byte(`{"status":{"phase":"` + string(di.Status.Phase) + `","deployer":{"version":"0"}}}`)
	return c.Status().Patch(ctx, di.DeepCopy(), client.RawPatch(types.MergePatchType, body))
}

func (s *spoiler) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	if _, ok := obj.(*corev1.ConfigMap); ok && s.uninstalls != nil {
		return s.uninstalls()
	}
	return c.Delete(ctx, obj, opts...)
}

// once applies a lie to the first read of an item for which fits returns true, and not again.
func once(fits func(di item) bool, lie func(di item)) func(item) {
	told := map[types.UID]bool{}
	return func(di item) {
		if !told[di.UID] && fits(di) {
			told[di.UID] = true
			lie(di)
		}
	}
}

// atFirst applies a lie to the first read of an item after the start, if fits returns true for it.
func atFirst(fits func(di item) bool, lie func(di item)) newSpoiler {
	return func(func(item) bool) *spoiler {
		seen := map[types.UID]bool{}
		return &spoiler{sees: func(di item) {
			if !seen[di.UID] && fits(di) {
				lie(di)
			}
			seen[di.UID] = true
		}}
	}
}
