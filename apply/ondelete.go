// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// createMissing implements the strategy OnDelete. Its create call does not change an existing object.
func (r *run) createMissing(ctx context.Context, o *object, s *slot) error {
	if s.UID == "" || s.Hash == "" {
		if err := r.create(ctx, o, s); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	live, err := r.read(ctx, o.ref)
	switch {
	case err != nil:
		return err
	case live == nil && s.Hash == "":
		return waiting(o.ref, "went away just now")
	case live == nil:
		s.forget()
		return r.create(ctx, o, s)
	case live.GetUID() == s.UID || r.isOurs(live):
		return r.leaveAsIs(ctx, o, s, live)
	}
	s.forget()
	return r.firstContact(ctx, o, s)
}

// leaveAsIs records an existing object, and restores only the item's marks.
func (r *run) leaveAsIs(ctx context.Context, o *object, s *slot, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return waiting(o.ref, isGoing)
	}
	if _, err := r.claimable(ctx, o, s, live); err != nil {
		return err
	}
	if live.GetUID() != s.UID {
		s.forget()
	}
	if s.UID = live.GetUID(); s.Hash == "" {
		s.Hash = o.hash
	}
	s.Deleting, s.live, s.version = false, live, live.GetResourceVersion()
	if owner, _ := ownership.OwnerOf(live); owner == r.owner {
		r.count(&r.report.Unchanged)
		return r.usable(o, s, live)
	}
	marks := &unstructured.Unstructured{Object: map[string]any{}}
	r.owner.Stamp(marks)
	if err := r.merge(ctx, s, marks.Object); err != nil {
		return err
	}
	r.count(&r.report.Applied)
	s.changed = true
	return r.usable(o, s, live)
}
