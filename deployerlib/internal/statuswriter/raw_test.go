// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/patch"
)

// TestApplyPatchToRaw checks that the patch functions of hooks and deployers also receive the fields that the Go type
// does not declare.
func TestApplyPatchToRaw(t *testing.T) {
	raw := map[string]any{
		"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
		"metadata": map[string]any{"name": "web", "resourceVersion": "1", "labels": map[string]any{"old": "1"}},
		"spec":     map[string]any{"type": "t", "newer": map[string]any{"a": "b"}},
		"status":   map[string]any{"observedGeneration": int64(1), "newer": "field"},
	}
	di := &lsv1alpha1.DeployItem{}
	di.APIVersion, di.Kind, di.Name = "landscaper.gardener.cloud/v1alpha1", "DeployItem", "web"
	di.ResourceVersion = "1"
	di.Labels, di.Spec.Type = map[string]string{"old": "1"}, "t"
	di.Status.ObservedGeneration, di.Status.Phase = 1, "Progressing"
	member := func(body map[string]any, key string) map[string]any { return body[key].(map[string]any) }
	t.Run("patch functions see the stored item with the changes in memory [F15]", func(t *testing.T) {
		p, seen := &patch.Patch{}, map[string]any{}
		p.Append(func(body map[string]any) error {
			seen = member(body, "status")
			member(member(body, "metadata"), "labels")["seen"] = member(body, "status")["newer"]
			return nil
		})
		out, err := applyPatches(raw, di, []*patch.Patch{p})
		if err != nil || out.Labels["seen"] != "field" || seen["phase"] != "Progressing" || seen["deployer"] != nil {
			t.Errorf("saw %v, made %+v, %v", seen, out, err)
		}
	})
	for name, change := range map[string]patch.Func{
		"changed": func(body map[string]any) error { member(body, "status")["newer"] = "x"; return nil },
		"added":   func(body map[string]any) error { member(body, "status")["newest"] = "x"; return nil },
		"deleted": func(body map[string]any) error { delete(member(body, "status"), "newer"); return nil },
	} {
		t.Run("fields that the Go type does not declare cannot be "+name+" [F15]", func(t *testing.T) {
			p := &patch.Patch{}
			p.Append(change)
			_, err := applyPatches(raw, di, []*patch.Patch{p})
			if field, ok := errors.AsType[*patch.FieldError](err); !ok || !strings.HasPrefix(field.Path, "status.newe") {
				t.Errorf("error %v, want a FieldError at status.newer", err)
			}
		})
	}
}
