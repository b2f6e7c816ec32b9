// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/readiness"
)

// These constants limit how often StorageClasses are read.
const (
	classTTL   = 10 * time.Minute // a class can be deleted and created again with another mode
	maxClasses = 100
)

var (
	classKind = schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}
	eventKind = corev1.SchemeGroupVersion.WithKind("EventList")
)

// classCache contains what is known about the StorageClasses of a cluster. The zero value is ready for use.
type classCache struct {
	mu  sync.Mutex
	all map[string]storageClass
}

// storageClass describes when the claims of a StorageClass are bound. The binding is BindingUnknown if the target does
// not allow the class to be read.
type storageClass struct {
	binding readiness.ClaimBinding
	until   time.Time
}

func (c *classCache) get(name string, now time.Time) (readiness.ClaimBinding, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	class, known := c.all[name]
	return class.binding, known && now.Before(class.until)
}

func (c *classCache) set(name string, class storageClass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxClasses {
		c.all = map[string]storageClass{}
	}
	c.all[name] = class
}

// getBinding returns when a PersistentVolumeClaim is bound. It reads the StorageClass of the claim, at most once in ten
// minutes. If the target does not allow this, it looks for an event which reports that the claim waits for a Pod.
func (c *Cluster) getBinding(ctx context.Context, claim *unstructured.Unstructured) readiness.ClaimBinding {
	name := readiness.GetClassName(claim)
	if name == "" {
		return readiness.BindingImmediate // without a class, no volume is created
	}
	now := c.all.manager.rt.Clock.Now()
	binding, known := c.classes.get(name, now)
	if !known {
		var err error
		binding, err = c.readBinding(ctx, name)
		switch {
		case err == nil || apierrors.IsForbidden(err):
			c.classes.set(name, storageClass{binding: binding, until: now.Add(classTTL)})
		case apierrors.IsNotFound(err):
			return readiness.BindingUnknown
		}
	}
	if binding == readiness.BindingUnknown && c.isWaitingForConsumer(ctx, claim) {
		return readiness.BindingForConsumer
	}
	return binding
}

// readBinding reads a StorageClass. If it returns an error, the binding is BindingUnknown.
func (c *Cluster) readBinding(ctx context.Context, name string) (readiness.ClaimBinding, error) {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(classKind)
	if err := c.Get(ctx, types.NamespacedName{Name: name}, class); err != nil {
		return readiness.BindingUnknown, err
	}
	mode, _, _ := unstructured.NestedString(class.Object, "volumeBindingMode") // not a string only if the server is faulty
	return cmp.Or(readiness.ClaimBinding(mode), readiness.BindingImmediate), nil
}

// isWaitingForConsumer reports whether an event shows that a claim is bound only when a Pod uses it. It returns false
// if the events cannot be read.
func (c *Cluster) isWaitingForConsumer(ctx context.Context, claim *unstructured.Unstructured) bool {
	events := &unstructured.UnstructuredList{}
	events.SetGroupVersionKind(eventKind)
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.uid", string(claim.GetUID())),
		fields.OneTermEqualSelector("reason", string(readiness.BindingForConsumer)), // the controller uses the mode as the reason
	)
	err := c.List(ctx, events, client.InNamespace(claim.GetNamespace()), client.MatchingFieldsSelector{Selector: selector}, client.Limit(1))
	return err == nil && len(events.Items) > 0
}
