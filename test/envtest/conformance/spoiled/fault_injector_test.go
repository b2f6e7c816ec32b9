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

// faultInjector changes what a deployer reads from the API server and what it writes. Fields that are nil or false have
// no effect.
type faultInjector struct {
	// onRead is called with each item that the deployer reads, and can change the item.
	onRead func(di item)
	// onStore is called before each write of a status, and can change the status.
	onStore func(di item)
	// onKeep is called before each write of the metadata, and can change the metadata.
	onKeep func(di item)
	// onFindTarget is called with the response to each read of a Target. It can change the Target, and returns the error
	// that the deployer receives.
	onFindTarget func(err error, target *lsv1alpha1.Target) error
	// onUninstall is called instead of the deletion of a deployed object, so that the object is not deleted.
	onUninstall func() error
	// If halves is true, the write that ends a job is split into two writes.
	halves bool
}

// client returns a client for the deployer that applies the changes of the spoiler.
func (s *faultInjector) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{Get: s.get, Patch: s.patch, SubResourcePatch: s.patchStatus, Delete: s.delete})
}

func (s *faultInjector) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Get(ctx, key, obj, opts...)
	switch o := obj.(type) {
	case item:
		if err == nil {
			s.handleRead(o)
		}
	case *lsv1alpha1.Target:
		if s.onFindTarget != nil {
			return s.onFindTarget(err, o)
		}
	}
	return err
}

func (s *faultInjector) handleRead(di item) {
	if s.onRead != nil {
		s.onRead(di)
	}
}

func (s *faultInjector) patch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	di := obj.(item)
	if s.onKeep != nil {
		s.onKeep(di)
	}
	err := c.Patch(ctx, di, patch, opts...)
	s.handleRead(di)
	return err
}

func (s *faultInjector) patchStatus(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	di := obj.(item)
	if s.onStore != nil {
		s.onStore(di)
	}
	if s.halves && contract.IsFinal(di.Status.Phase) {
		if err := patchPhaseFirst(ctx, c, di); err != nil {
			return err
		}
		patch = client.RawPatch(types.MergePatchType, []byte(`{"status":{"jobIDFinished":"`+di.Status.JobID+`","deployer":{"version":"1"}}}`))
	}
	err := c.SubResource(sub).Patch(ctx, di, patch, opts...)
	s.handleRead(di)
	return err
}

// patchPhaseFirst makes the first of two writes that replace the write at the end of a job. It sets the phase of the
// item and changes the deployer version in the status. The second write reverts this version.
func patchPhaseFirst(ctx context.Context, c client.Client, di item) error {
	body := []byte(`{"status":{"phase":"` + string(di.Status.Phase) + `","deployer":{"version":"0"}}}`)
	return c.Status().Patch(ctx, di.DeepCopy(), client.RawPatch(types.MergePatchType, body))
}

func (s *faultInjector) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	if _, ok := obj.(*corev1.ConfigMap); ok && s.onUninstall != nil {
		return s.onUninstall()
	}
	return c.Delete(ctx, obj, opts...)
}

// onFirstMatch returns a function for the field `onRead`, which is called with each item that is read. For each item,
// the returned function calls `lie` once: at the first read for which `fits` returns true.
func onFirstMatch(fits func(di item) bool, lie func(di item)) func(item) {
	told := map[types.UID]bool{}
	return func(di item) {
		if !told[di.UID] && fits(di) {
			told[di.UID] = true
			lie(di)
		}
	}
}

// onFirstRead returns a spoiler. At the first read of an item after the start, the spoiler calls `lie` if `fits`
// returns true for the item.
func onFirstRead(fits func(di item) bool, lie func(di item)) newFaultInjector {
	return func(func(item) bool) *faultInjector {
		seen := map[types.UID]bool{}
		return &faultInjector{onRead: func(di item) {
			if !seen[di.UID] && fits(di) {
				lie(di)
			}
			seen[di.UID] = true
		}}
	}
}
