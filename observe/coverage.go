// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Scope describes how much of a resource is watched.
type Scope string

const (
	// ScopeCluster means that all objects of the resource are watched.
	ScopeCluster Scope = "Cluster"
	// ScopeNamespaces means that the objects in the namespaces of Coverage.Namespaces are watched.
	ScopeNamespaces Scope = "Namespaces"
	// ScopeNone means that nothing is watched.
	ScopeNone Scope = "None"
)

// Coverage is the result of Watch: it describes which objects of a resource are watched.
type Coverage struct {
	Scope Scope
	// Namespaces lists the watched namespaces, sorted. It is empty unless Scope is ScopeNamespaces.
	Namespaces []string
	// Missing lists the requested namespaces that are not watched, sorted.
	Missing []string
	// Message explains in one line why the whole cluster is not watched. It is empty if Scope is ScopeCluster.
	Message string
	// NotServed means that nothing is watched because the target did not serve the resource. This may change at any
	// time, so call Watch again, at the latest when an object of the resource exists (see Watcher.MarkServed).
	NotServed bool
	// Refused means that the target does not allow the watches that are missing, or has too many objects of the
	// resource. Watch repeats such a request after ten minutes.
	Refused bool
}

// Contains reports whether the watches detect drift of objects in the given namespace. An empty namespace stands for
// cluster-scoped objects.
func (c Coverage) Contains(namespace string) bool {
	return c.Scope == ScopeCluster || c.Scope == ScopeNamespaces && slices.Contains(c.Namespaces, namespace)
}

// IsComplete reports whether the watches detect drift of all requested objects.
func (c Coverage) IsComplete() bool {
	return c.Scope == ScopeCluster || c.Scope == ScopeNamespaces && len(c.Missing) == 0
}

// Watch ensures that a resource is watched, and waits for the first list of its objects. It watches the whole cluster
// if the target allows this. Otherwise it watches each of the given namespaces that the target allows. If the resource
// is already watched, Watch sends no request. Pass the namespaces in which the item has objects of the resource, or
// none if the resource is cluster-scoped.
//
// Watch returns an error only if ctx ends. If the resource or a namespace cannot be watched, the Coverage contains the
// namespaces that are not watched and the reason. If the target does not answer in time, the attempts continue in the
// background, and the next call returns their result.
func (w *Watcher) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespaces ...string) (Coverage, error) {
	waiting, cancel := context.WithTimeout(ctx, w.opts.SyncTimeout)
	defer cancel()
	reason := w.openStore(newStoredScope(gvr, "")).wait(waiting)
	if reason == nil {
		return Coverage{Scope: ScopeCluster}, ctx.Err()
	}
	namespaces = slices.Sorted(maps.Keys(sets.New(namespaces...).Delete("")))
	none := Coverage{Scope: ScopeNone, Missing: namespaces, Message: reason.Error()}
	refused, ok := errors.AsType[*refusal](reason)
	if !ok || !refused.forbidden || len(namespaces) == 0 {
		none.NotServed, none.Refused = ok && refused.missing, ok && !refused.missing
		return none, ctx.Err()
	}
	return w.watchNamespaces(waiting, gvr, namespaces, reason), ctx.Err()
}

// watchNamespaces watches each of the given namespaces, because the target refuses to watch the whole cluster for the
// given reason.
func (w *Watcher) watchNamespaces(ctx context.Context, gvr schema.GroupVersionResource, namespaces []string, reason error) Coverage {
	openings := make([]openResult, 0, len(namespaces))
	for _, namespace := range namespaces {
		openings = append(openings, w.openStore(newStoredScope(gvr, namespace)))
	}
	c := Coverage{Scope: ScopeNamespaces, Message: reason.Error(), Refused: true}
	for i, o := range openings {
		if err := o.wait(ctx); err != nil {
			c.Missing, c.Message = append(c.Missing, namespaces[i]), err.Error()
			refused, ok := errors.AsType[*refusal](err)
			c.Refused = c.Refused && ok && !refused.missing
			continue
		}
		c.Namespaces = append(c.Namespaces, namespaces[i])
	}
	if len(c.Namespaces) == 0 {
		c.Scope = ScopeNone
	}
	c.Refused = c.Refused && len(c.Missing) > 0
	return c
}
