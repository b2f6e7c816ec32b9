// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
)

// session is how a run reaches the target cluster and the inventory. The deployer around the graph implements it; one
// session serves one run of one item. It is safe for concurrent use, and nothing in it waits.
type session interface {
	writer
	reader
}

// writer changes the target cluster.
type writer interface {
	// Claim puts what a component is about to write into the inventory, and that it has something to undo into the status. It
	// stores both if they grew, together with what others will write, as far as foresee knows, and not at all otherwise.
	Claim(ctx context.Context, c claim, foresee func() []claim) error
	// Apply writes the objects of one component that are not known to be as desired. The outcomes are in the order of
	// desired. The error is only for what concerns all of them; an object's own is in its outcome.
	Apply(ctx context.Context, of unit, desired []apply.Desired) ([]outcome, error)
	// Delete deletes objects, by UID, and returns those that are not gone yet.
	Delete(ctx context.Context, refs []apply.Ref) ([]apply.Waiting, error)
}

// reader looks at the target cluster.
type reader interface {
	// Ready tells why an object is not ready; "" when it is. judge nil: by the default rules. It is not asked again about
	// a version of the object that it found ready.
	Ready(ctx context.Context, ref apply.Ref, judge judge) (reason string, err error)
	// Find reads the objects of a reference, which must not be changed, and has the item run when others are there.
	Find(ctx context.Context, component string, wanted search) ([]*unstructured.Unstructured, error)
	// Judge tells why an object that Find returned is not ready, by the default rules; "" when it is.
	Judge(ctx context.Context, live *unstructured.Unstructured) (reason string, err error)
	// Changed says that an object may have changed since it was read in this run.
	Changed(ref apply.Ref)
	// Get reads an object; nil when it does not exist.
	Get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error)
}

// judge tells why an object is not ready; "" when it is. It looks at nothing but the object.
type judge func(live *unstructured.Unstructured) (reason string, err error)

// unit is a node as the inventory remembers it.
type unit struct {
	Component string
	// Requires are the components that must be there before this one, and go after it.
	Requires []string
}

// claim is what a component is about to write.
type claim struct {
	unit
	Desired []apply.Desired
	// Undo: the component has a Delete of its own.
	Undo bool
}

// outcome is what became of a desired object.
type outcome struct {
	Ref apply.Ref
	// Live is the answer of the API server; nil when nothing had to be sent.
	Live *unstructured.Unstructured
	// Changed: the write changed something.
	Changed bool
	// Waiting is why the object is not usable yet; "" when it is.
	Waiting string
	Err     error
}
