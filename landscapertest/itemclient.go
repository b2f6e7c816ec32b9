// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemClient reads and patches deploy items.
type itemClient struct{ client.Client }

func (c itemClient) get(ctx context.Context, item types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := c.Get(ctx, item, di); err != nil {
		return nil, fmt.Errorf("get deploy item %s: %w", item, err)
	}
	return di, nil
}

// patch sends a merge patch of the main resource.
func (c itemClient) patch(ctx context.Context, item types.NamespacedName, body map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := c.Patch(ctx, newItemWithKey(item), client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("patch deploy item %s: %w", item, err)
	}
	return nil
}

// conflictBackoff retries a write that fails with a conflict, for about ten seconds.
var conflictBackoff = wait.Backoff{Steps: 300, Duration: 20 * time.Millisecond, Factor: 1, Jitter: 1}

// patchStatus sends a merge patch of the status. The schema requires an observedGeneration. If observedGeneration is
// nil in `status`, patchStatus keeps the stored value. If no value is stored, patchStatus writes 0. In that case, the
// patch contains the resourceVersion, so that it cannot overwrite a value that a deployer writes at the same time.
func (c itemClient) patchStatus(ctx context.Context, item types.NamespacedName, status map[string]any) error {
	return retry.RetryOnConflict(conflictBackoff, func() error { return c.tryPatchStatus(ctx, item, maps.Clone(status)) })
}

func (c itemClient) tryPatchStatus(ctx context.Context, item types.NamespacedName, status map[string]any) error {
	body := map[string]any{"status": status}
	if known, ok := status["observedGeneration"]; ok && known == nil {
		di, err := c.get(ctx, item)
		if err != nil {
			return err
		}
		delete(status, "observedGeneration")
		if di.Status.ObservedGeneration == 0 {
			status["observedGeneration"] = 0
			body["metadata"] = map[string]any{"resourceVersion": di.ResourceVersion}
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := c.Status().Patch(ctx, newItemWithKey(item), client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("patch status of deploy item %s: %w", item, err)
	}
	return nil
}
