// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemReader reads deploy items. What it returns is shared and must not be changed.
type itemReader interface {
	get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error)
}

// cachedItems reads from the informer's store without a copy, so that a pass
// over a finished item costs next to nothing.
type cachedItems struct {
	cache  cache.Cache
	client client.Client

	mu    sync.Mutex
	store toolscache.Indexer
	tried bool
}

// get returns the shared object from the cache.
func (i *cachedItems) get(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	store := i.indexer(ctx)
	if store == nil {
		di := &lsv1alpha1.DeployItem{}
		return di, i.client.Get(ctx, key, di)
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

// indexer finds the informer's store; nil when the cache is of a kind that has none (several namespaces).
func (i *cachedItems) indexer(ctx context.Context) toolscache.Indexer {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.tried {
		return i.store
	}
	informer, err := i.cache.GetInformer(ctx, &lsv1alpha1.DeployItem{})
	if err != nil {
		return nil
	}
	i.tried = true
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		i.store = shared.GetIndexer()
	}
	return i.store
}
