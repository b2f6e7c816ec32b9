// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unique"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scheme returns a new scheme with the types that a deployer handles: the types of Kubernetes and the types of
// Landscaper.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of Kubernetes: %w", err)
	}
	if err := lsv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of Landscaper: %w", err)
	}
	return scheme, nil
}

// CacheByObject returns options for the cache of the Landscaper cluster's manager. These options reduce the memory of
// the cache. Items whose type is not in the parameter `types` are stored without configuration and status. All items
// are stored without managed fields, and share the memory of equal strings. Call CacheByObject once per manager, with
// the types of all deployers. Add does not require these options.
func CacheByObject(types ...lsv1alpha1.DeployItemType) map[client.Object]cache.ByObject {
	return Shard{}.CacheByObject(types...)
}

// CacheByObject is like the function CacheByObject, but also stores the items of other shards without configuration and
// status.
func (s Shard) CacheByObject(types ...lsv1alpha1.DeployItemType) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&lsv1alpha1.DeployItem{}: {Transform: stripForeign(s, types)},
	}
}

// stripForeign returns the transform function of Shard.CacheByObject. The function is idempotent, because the informer
// calls it more than once per object. It never returns an error, because the informer would then drop the object.
func stripForeign(shard Shard, types []lsv1alpha1.DeployItemType) func(any) (any, error) {
	return func(obj any) (any, error) {
		di, ok := obj.(*lsv1alpha1.DeployItem)
		if !ok {
			return obj, nil
		}
		di.ManagedFields = nil
		if !slices.Contains(types, di.Spec.Type) || !shard.Contains(di.Namespace) {
			di.Annotations, di.Labels, di.OwnerReferences = nil, nil, nil
			di.Spec = lsv1alpha1.DeployItemSpec{Type: di.Spec.Type}
			di.Status = lsv1alpha1.DeployItemStatus{}
		}
		shareStrings(di)
		return di, nil
	}
}

// shareStrings replaces the strings that are the same in many items, so that all items share the memory of such a
// string.
func shareStrings(di *lsv1alpha1.DeployItem) {
	share(&di.Kind)
	share(&di.APIVersion)
	share(&di.Namespace)
	share(&di.Spec.Type)
	share(&di.Spec.Context)
	shareKeys(di.Labels)
	shareKeys(di.Annotations)
	for i := range di.Finalizers {
		share(&di.Finalizers[i])
	}
	s := &di.Status
	share(&s.Phase)
	share(&s.Deployer.Identity)
	share(&s.Deployer.Name)
	share(&s.Deployer.Version)
	if s.JobID == s.JobIDFinished {
		s.JobIDFinished = s.JobID
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		share(&c.Type)
		share(&c.Status)
		share(&c.Reason)
		share(&c.Message)
	}
}

// shareKeys shares the keys of a map, and those values that are the same in many items. Sharing a value that only one
// item contains would take more memory.
func shareKeys(values map[string]string) {
	for key, value := range values {
		if key == lsv1alpha1.DeployerTypeAnnotation || key == lsv1alpha1.DeployerTargetNameAnnotation {
			share(&value)
		}
		share(&key)
		values[key] = value // replaces the key, too
	}
}

// share replaces a string by an equal string that other objects use, too.
func share[T ~string](text *T) {
	*text = T(unique.Make(string(*text)).Value())
}

// itemReader reads deploy items. The returned items are shared and must not be changed.
type itemReader interface {
	get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)
}

// cachedItems reads from the informer's store without a copy, so that a reconcile of a finished item is cheap.
type cachedItems struct {
	cache  cache.Cache
	client client.Client

	mu          sync.Mutex
	store       toolscache.Indexer
	initialized bool
}

// get returns the shared object from the cache.
func (i *cachedItems) get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	store := i.getIndexer(ctx)
	if store == nil {
		di := &lsv1alpha1.DeployItem{}
		return di, i.client.Get(ctx, key, di, client.UnsafeDisableDeepCopy)
	}
	obj, exists, err := store.GetByKey(key.String())
	if err != nil {
		return nil, err
	}
	di, ok := obj.(*lsv1alpha1.DeployItem)
	if !exists || !ok {
		return nil, apierrors.NewNotFound(lsv1alpha1.Resource("deployitems"), key.String())
	}
	return di, nil
}

// getIndexer returns the informer's store. It returns nil if the cache is limited to several namespaces, because such a
// cache has one store per namespace.
func (i *cachedItems) getIndexer(ctx context.Context) toolscache.Indexer {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.initialized {
		return i.store
	}
	informer, err := i.cache.GetInformer(ctx, &lsv1alpha1.DeployItem{})
	if err != nil {
		return nil
	}
	i.initialized = true
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		i.store = shared.GetIndexer()
	}
	return i.store
}
