// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// isJobFinished reports whether the last job of an item has ended.
func isJobFinished(di *lsv1alpha1.DeployItem) bool {
	return di != nil && di.Status.JobID != "" && di.Status.JobID == di.Status.JobIDFinished && contract.IsFinal(di.Status.Phase)
}

// isGone reports whether an item does not exist. An item that does not exist is nil.
func isGone(di *lsv1alpha1.DeployItem) bool { return di == nil }

// waitFor waits until the function `ok` returns true for an item. The item is nil if it does not exist. await polls the
// history, because that needs no requests. The history may be outdated, so await confirms the result with a read from
// the API server.
func (w *env) waitFor(ctx context.Context, it *item, ok func(*lsv1alpha1.DeployItem) bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		di := w.history.latest(it.name)
		if ok(di) {
			err := w.retryUntilSuccess(ctx, func(ctx context.Context) error {
				var err error
				if di, err = w.Landscaper.Get(ctx, w.Key(it.name)); apierrors.IsNotFound(err) {
					di, err = nil, nil
				}
				return err
			})
			if err == nil && ok(di) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the item is stuck: %s; stored is %s", formatItem(di), w.readForMessage(ctx, it))
		case <-tick.C:
		}
	}
}

// readForMessage reads an item from the API server, for error messages. The history may be outdated, because its watch
// may have ended.
func (w *env) readForMessage(ctx context.Context, it *item) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	di, err := w.Landscaper.Get(ctx, w.Key(it.name))
	if err != nil {
		return err.Error()
	}
	return formatItem(di)
}

// formatItem returns an item as text for an error message.
func formatItem(di *lsv1alpha1.DeployItem) string {
	if di == nil {
		return "it does not exist"
	}
	raw, err := json.Marshal(di.Status)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("resource version %s, generation %d, deleted at %v, annotations %v, finalizers %v, status %s",
		di.ResourceVersion, di.Generation, di.DeletionTimestamp, di.Annotations, di.Finalizers, raw)
}

// setTimeout sets the timeout of an item to the desired timeout.
func (w *env) setTimeout(ctx context.Context, it *item) error {
	var value any
	if it.want.timeout > 0 {
		value = it.want.timeout.String()
	}
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"timeout": value}})
	if err != nil {
		return err
	}
	return w.retryUntilSuccess(ctx, func(ctx context.Context) error {
		di := &lsv1alpha1.DeployItem{}
		di.Namespace, di.Name = w.Namespace, it.name
		return w.Client.Patch(ctx, di, client.RawPatch(types.MergePatchType, raw))
	})
}

// changeObject edits or deletes an object of an item as a user would. If the deployer need not correct such a change,
// drift starts another job instead.
func (a *itemUser) changeObject(ctx context.Context, it *item) error {
	if !it.kind.objects || it.want.invalid || it.calledOff {
		return a.startSameConfig(ctx, it)
	}
	ends := sortKeys(it.want.objects)
	name, what := object(it.name, ends[a.random.IntN(len(ends))]), a.random.IntN(3)
	return a.retryUntilSuccess(ctx, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		cm.Namespace, cm.Name = a.Namespace, name
		if what == 0 {
			return a.Client.Delete(ctx, cm)
		}
		if err := a.Client.Get(ctx, a.Key(name), cm); err != nil {
			return err
		}
		if what == 1 {
			cm.Data = nil
		} else {
			cm.Data = map[string]string{dataKey: "theirs"}
		}
		return a.Client.Update(ctx, cm, client.FieldOwner("kubectl-edit"))
	}, apierrors.IsNotFound, apierrors.IsConflict)
}

// isExpired reports whether the resource version with which a watch would continue has expired.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
