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

// spoiler changes what a deployer reads from the API server and what it writes. Fields that are nil or false have no
// effect.
type spoiler struct {
	// sees is called with each item that the deployer reads, and can change the item.
	sees func(di item)
	// stores is called before each write of a status, and can change the status.
	stores func(di item)
	// keeps is called before each write of the metadata, and can change the metadata.
	keeps func(di item)
	// finds is called with the response to each read of a Target. It can change the Target, and returns the error
	// that the deployer receives.
	finds func(err error, target *lsv1alpha1.Target) error
	// uninstalls is called instead of the deletion of a deployed object, so that the object is not deleted.
	uninstalls func() error
	// If halves is true, the write that ends a job is split into two writes.
	halves bool
}

// client returns a client for the deployer that applies the changes of the spoiler.
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

// firstHalf makes the first of two writes that replace the write at the end of a job. It sets the phase of the item and
// changes the deployer version in the status. The second write reverts this version.
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

// The function `once` returns a function for the field `sees`, which is called with each item that is read. For each
// item, the returned function calls `lie` once: at the first read for which `fits` returns true.
func once(fits func(di item) bool, lie func(di item)) func(item) {
	told := map[types.UID]bool{}
	return func(di item) {
		if !told[di.UID] && fits(di) {
			told[di.UID] = true
			lie(di)
		}
	}
}

// atFirst returns a spoiler. At the first read of an item after the start, the spoiler calls `lie` if `fits` returns
// true for the item.
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
