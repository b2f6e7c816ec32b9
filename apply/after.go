// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// AfterDeployment sends PatchAfterDeployment to the objects that were written since it was last sent. The caller
// calls it when the objects are ready. The patches are sent under a separate manager, and later calls compare with
// the patched objects. Errors and the inventory are the same as for Apply.
func (e *Engine) AfterDeployment(ctx context.Context, owner ownership.Owner, desired []Desired, inv Inventory) (Inventory, Report, error) {
	objects, hide, err := e.prepare(ctx, owner, desired)
	if err != nil {
		return inv, Report{}, err
	}
	r := e.newRun(owner, inv, hide)
	due := []*object{}
	for _, o := range objects {
		s := r.book[o.ref.id()]
		if s == nil || o.untouched() {
			continue
		}
		s.resource = o.kind.resource
		if s.PatchDue && s.UID != "" && s.Hash == o.hash {
			due = append(due, o)
		}
	}
	forEach(ctx, e.options.Concurrency, due, func(o *object) {
		r.on(o.ref, func(s *slot) { r.note(o.ref, r.patchAfter(ctx, o, s)) })
	})
	return r.result(ctx)
}

func (r *run) patchAfter(ctx context.Context, o *object, s *slot) error {
	body := overlay(o.PatchAfterDeployment, map[string]any{"metadata": map[string]any{"uid": string(s.UID)}})
	data, err := json.Marshal(body)
	if err != nil {
		return invalid(o.ref, "patchAfterDeployment", "not JSON: %v", err)
	}
	live := o.ref.empty()
	err = r.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, data), client.FieldOwner(r.owner.PatchManager()))
	if err != nil {
		return err
	}
	r.count(&r.report.Applied)
	s.version = live.GetResourceVersion()
	if s.PatchDue = false; s.Key != "" {
		s.Key = ownership.KeyOf(live, r.owner.Manager())
	}
	return nil
}
