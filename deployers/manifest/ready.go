// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// readers is how many objects are read at a time to see whether they are ready.
const readers = 16

// awaitReady waits until all objects of the item are ready. What was ready and
// has not changed since, as a watch tells, is not read again.
func (r *run) awaitReady(ctx context.Context) error {
	if r.config.DisableDefaultReadiness {
		return nil
	}
	found := make([]looked, len(r.inventory.Entries))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, entry := range r.inventory.Entries {
		if entry.UID == "" || entry.Deleting || r.knownReady(entry) {
			continue
		}
		group.Go(func() (err error) {
			found[i], err = r.look(groupCtx, entry.Ref())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var unready []string
	for i := range found {
		if found[i].reason != "" {
			unready = append(unready, found[i].reason)
		} else if found[i].version != "" {
			r.item.ready[r.inventory.Entries[i].Ref()] = found[i].version
		}
	}
	return r.awaitAll("readiness", r.config.ReadinessTimeout, unready)
}

// looked is what came out of a look at an object: why it is not ready, or the
// version at which it is. The zero value: nobody looked.
type looked struct{ reason, version string }

// awaitAll waits for what has a reason to be waited for.
func (r *run) awaitAll(step string, bound time.Duration, reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	reason := reasons[0]
	if more := len(reasons) - 1; more > 0 {
		reason = fmt.Sprintf("%s (and %d more)", reason, more)
	}
	return r.wait(step, bound, reason, r.poll())
}

// poll is when to look again if no watch says so before.
func (r *run) poll() time.Duration {
	if r.unwatched {
		return pollUnwatched
	}
	return pollWatched
}

// stateless are built-in kinds that are ready as soon as they are there.
var stateless = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
}

// knownReady tells whether nobody needs to look: the apply before has shown that the object is there and it needs no
// more, or it was ready and has not changed since, as a watch tells.
func (r *run) knownReady(entry apply.Entry) bool {
	if stateless[entry.Ref().GVK().GroupKind()] {
		return true
	}
	version := r.item.ready[entry.Ref()]
	if version == "" {
		return false
	}
	mapping, err := r.cluster.mapping(entry.Ref().GVK())
	if err != nil || mapping == nil {
		return false
	}
	seen, known := r.cluster.watcher.Get(mapping.Resource, entry.Ref().Key())
	return known && seen.UID == entry.UID && seen.ResourceVersion == version
}

// look reads an object and tells whether it is ready.
func (r *run) look(ctx context.Context, ref apply.Ref) (looked, error) {
	live, err := r.read(ctx, r.cluster, ref)
	switch {
	case err != nil:
		return looked{}, err
	case live == nil:
		return looked{reason: ref.String() + " does not exist"}, nil
	}
	rules := readiness.Rules{ExpectsStatus: func(gvk schema.GroupVersionKind) bool { return r.cluster.expectsStatus(ctx, gvk) }}
	if result := rules.Of(live); !result.Ready() {
		return looked{reason: ref.String() + ": " + result.Reason}, nil
	}
	return looked{version: live.GetResourceVersion()}, nil
}

// read reads an object; nil when it does not exist, or its kind is not known.
func (r *run) read(ctx context.Context, from *cluster, ref apply.Ref) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK())
	err := from.Get(ctx, ref.Key(), obj)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return obj, nil
}
