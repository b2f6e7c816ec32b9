// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch sends a merge patch of the main resource.
func (l *Landscaper) patch(ctx context.Context, item types.NamespacedName, body map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := l.client.Patch(ctx, shell(item), client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("patch deploy item %s: %w", item, err)
	}
	return nil
}

// stubborn is how often a write is tried again that others come before: for some ten seconds.
var stubborn = wait.Backoff{Steps: 300, Duration: 20 * time.Millisecond, Factor: 1, Jitter: 1}

// patchStatus sends a merge patch of the status. "observedGeneration": nil
// stands for: keep it, 0 if there is none, because the schema wants one. A
// deployer that writes the first one at the same time is not overwritten.
func (l *Landscaper) patchStatus(ctx context.Context, item types.NamespacedName, status map[string]any) error {
	return retry.RetryOnConflict(stubborn, func() error { return l.tryPatchStatus(ctx, item, maps.Clone(status)) })
}

func (l *Landscaper) tryPatchStatus(ctx context.Context, item types.NamespacedName, status map[string]any) error {
	body := map[string]any{"status": status}
	if known, ok := status["observedGeneration"]; ok && known == nil {
		di, err := l.Get(ctx, item)
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
	if err := l.client.Status().Patch(ctx, shell(item), client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("patch status of deploy item %s: %w", item, err)
	}
	return nil
}
