// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/targets"
)

// staleRetry is the maximum delay of the next attempt if the event of the library's own last write has not arrived yet.
const staleRetry = time.Second

// fetch reads the item from the cache. If the item does not exist or belongs to another deployer, fetch removes the
// in-memory state of the item. If the item exists only in the cache and no longer at the API server, the delete event
// of the item will remove the state. If the cached version is older than the library's own last write, the attempt
// ends, and the next attempt begins when the newer version arrives, or after staleRetry. Otherwise, fetch determines
// the revision of the contract that the whole attempt follows.
func (r *reconciler) fetch(ctx context.Context, a *attempt) (verdict, error) {
	item, err := r.items.get(ctx, a.key)
	if err != nil && !notfound.IsProof(err) {
		return verdictStop, err
	}
	if err != nil || !r.events.isMine(item) {
		r.tracker.Forget(a.key)
		return verdictDrop, nil
	}
	switch r.checkCached(ctx, a, item) {
	case itemstate.ReadingRemoved:
		return verdictDrop, nil
	case itemstate.ReadingStale, itemstate.ReadingSuspect:
		a.wait = staleRetry
		return verdictStop, nil
	case itemstate.ReadingCurrent:
	}
	a.session = r.writer.Open(a.state, item)
	a.revision = r.evaluateContract(item).Revision
	a.log = a.log.WithValues("generation", item.Generation)
	return verdictProceed, nil
}

// checkCached determines whether the version in the cache is current, stale, or a version of an item that no longer
// exists. If the version has been stale for too long, read first reads the item from the API server.
func (r *reconciler) checkCached(ctx context.Context, a *attempt, cached *lsv1alpha1.DeployItem) itemstate.Reading {
	reading := a.state.CheckRead(cached, r.args.Clock.Now())
	if reading != itemstate.ReadingSuspect {
		return reading
	}
	if err := r.writer.CheckVersion(ctx, a.key, a.state); err != nil {
		a.log.V(1).Info("cannot read the item from the API server to check whether the cache lags behind", "error", err.Error())
	}
	return a.state.CheckRead(cached, r.args.Clock.Now())
}

// getRequestTime returns the time before which the due run of an item was requested. The run must see its Target and
// its Context as they were at this time, or newer. The result is zero if no run is due, or if the due run needs nothing
// newer than the cache: an abort only ends what an earlier run began, and a background run was not requested.
func (r *reconciler) getRequestTime(a *attempt) time.Time {
	item := a.session.GetWorkingCopy()
	d := r.evaluateAttempt(a, item)
	if !d.Due || d.Unchanged || d.Background || d.Expired || d.Action == contract.ActionAbort {
		return time.Time{}
	}
	return a.state.GetRequestTime(item, d.New, r.args.Clock.Now())
}

// checkResponsibility reads the Target and matches it against the selectors. It stores the Target in the attempt even
// if the selectors do not match, because a hook may override the verdict.
func (r *reconciler) checkResponsibility(ctx context.Context, a *attempt) (verdict, error) {
	a.notBefore = r.getRequestTime(a)
	item := a.session.GetOriginal()
	if item.Spec.Target == nil {
		return verdictProceed, nil
	}
	key := client.ObjectKey{Namespace: a.key.Namespace, Name: item.Spec.Target.Name}
	target, err := r.loader.targets.get(ctx, key, a.notBefore)
	if notfound.IsProof(err) {
		a.target.err = fmt.Errorf("target %q not found in namespace %q", key.Name, key.Namespace)
		return r.checkResponsibilityWithoutTarget(item), nil
	}
	if err != nil {
		return verdictStop, fmt.Errorf("get Target %s: %w", key, err)
	}
	a.target.object = target
	matches, err := targets.MatchesSelectors(target, r.args.TargetSelectors)
	if err != nil {
		return verdictStop, fmt.Errorf("target selectors: %w", err)
	}
	if !matches {
		return verdictStop, nil
	}
	return verdictProceed, nil
}

// checkResponsibilityWithoutTarget returns the verdict for an item whose Target is missing. If there are selectors,
// only the deployer that is named in the item's status is responsible, so that several deployers do not compete for the
// status.
func (r *reconciler) checkResponsibilityWithoutTarget(item *lsv1alpha1.DeployItem) verdict {
	if len(r.args.TargetSelectors) == 0 || item.Status.Deployer.Name == r.args.Name {
		return verdictProceed
	}
	return verdictStop
}

// markResponsible records that this deployer is responsible and may write the status.
func markResponsible(a *attempt) { a.responsible = true }

// toLabelSet returns the labels of an item.
func toLabelSet(di *lsv1alpha1.DeployItem) labels.Set { return di.Labels }
