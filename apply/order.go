// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stage is the position of an object in the order of Apply. Deletion uses the reverse order.
type stage int

const (
	stageDefinitions stage = iota
	stageNamespaces
	stageCluster
	stageNamespaced
	stageEnd
)

func stageOf(gk schema.GroupKind, namespaced bool) stage {
	switch {
	case isDefinition(gk):
		return stageDefinitions
	case gk == schema.GroupKind{Kind: "Namespace"}:
		return stageNamespaces
	case namespaced:
		return stageNamespaced
	}
	return stageCluster
}

// stages splits objects into CustomResourceDefinitions, namespaces, cluster-scoped and namespaced objects. Within a
// stage they keep their order.
func stages(objects []*object) [][]*object {
	out := make([][]*object, stageEnd)
	for _, o := range objects {
		at := stageOf(o.ref.GVK().GroupKind(), o.kind.namespaced)
		out[at] = append(out[at], o)
	}
	return out
}

// forEach calls f for each element of the list, in its order, at most limit at a time, until the context ends.
func forEach[T any](ctx context.Context, limit int, list []T, f func(T)) {
	var all sync.WaitGroup
	free := make(chan struct{}, limit)
	for _, one := range list {
		select {
		case <-ctx.Done():
		case free <- struct{}{}:
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			f(one)
		})
	}
	all.Wait()
}
