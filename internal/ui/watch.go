// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// retryInterval is the time between two attempts to watch a kind.
const retryInterval = 5 * time.Second

// watcher fills a store with the objects of a cluster, and records which kinds it cannot read.
type watcher struct {
	store     *store
	scheme    *runtime.Scheme
	config    *rest.Config
	namespace string
	clock     clock.PassiveClock

	mu     sync.Mutex
	synced map[string]bool
	faults map[string]string
}

// watchStatus describes which kinds have been read completely, and which cannot be read.
type watchStatus struct {
	Synced   bool              `json:"synced"`
	Problems map[string]string `json:"problems,omitempty"`
}

// kinds returns an empty object of each kind that the watcher watches.
func kinds() map[string]client.Object {
	return map[string]client.Object{
		kindInstallation: &lsv1alpha1.Installation{}, kindExecution: &lsv1alpha1.Execution{}, kindDeployItem: &lsv1alpha1.DeployItem{},
	}
}

// status returns the current status. A kind that cannot be read does not count as missing.
func (w *watcher) status() watchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := watchStatus{Synced: true, Problems: map[string]string{}}
	for kind := range kinds() {
		fault := w.faults[kind]
		if fault != "" {
			s.Problems[kind] = fault
		}
		s.Synced = s.Synced && (w.synced[kind] || fault != "")
	}
	return s
}

// setFault records why a kind cannot be read. If the API server rejected a request, its own message says why.
func (w *watcher) setFault(kind string, err error) {
	text := err.Error()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text = status.ErrStatus.Message
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind] = contract.OneLine(text, 1024)
}

func (w *watcher) setSynced(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced[kind] = true
	delete(w.faults, kind)
}

// run watches all kinds until ctx is done.
func (w *watcher) run(ctx context.Context) {
	var group sync.WaitGroup
	for kind, obj := range kinds() {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := w.watchKind(ctx, kind, obj); err != nil && ctx.Err() == nil {
					w.setFault(kind, err)
				}
				waitFor(ctx, retryInterval)
			}
		})
	}
	group.Wait()
}

// waitFor waits until the duration has passed or ctx is done.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// watchKind watches one kind until ctx is done. It returns early if the kind does not exist.
func (w *watcher) watchKind(ctx context.Context, kind string, obj client.Object) error {
	options := cache.Options{
		Scheme: w.scheme, DefaultTransform: w.toRowObject,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) { w.setFault(kind, err) },
	}
	if w.namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	}
	objects, err := cache.New(w.config, options)
	if err != nil {
		return err
	}
	informer, err := objects.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no %ss; is it a cluster with Landscaper?", kind)
	case err != nil:
		return err
	}
	if _, err := informer.AddEventHandler(w.newHandler(kind)); err != nil {
		return err
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.setSynced(kind)
		}
	}()
	return objects.Start(ctx)
}

// newHandler returns a handler that copies the rows of a kind to the store.
func (w *watcher) newHandler(kind string) toolscache.ResourceEventHandler {
	set := func(obj any) {
		if r, ok := obj.(*rowObject); ok {
			w.store.set(r.row)
			w.setSynced(kind)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if key, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
				w.store.remove(formatID(kind, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}))
			}
		},
	}
}

// rowObject is what the cache keeps of an object: its name and its row.
type rowObject struct {
	metav1.PartialObjectMetadata

	row row
}

// toRowObject reduces an object to its row, so that the cache needs little memory and no configuration stays in it.
func (w *watcher) toRowObject(obj any) (any, error) {
	var r row
	var from metav1.Object
	switch o := obj.(type) {
	case *lsv1alpha1.Installation:
		r, from = newInstallationRow(o), o
	case *lsv1alpha1.Execution:
		r, from = newExecutionRow(o), o
	case *lsv1alpha1.DeployItem:
		r, from = newItemRow(o, w.clock.Now()), o
	default:
		return obj, nil // it was reduced before
	}
	out := &rowObject{row: r}
	out.Namespace, out.Name, out.UID, out.ResourceVersion = from.GetNamespace(), from.GetName(), from.GetUID(), from.GetResourceVersion()
	return out, nil
}
