// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// ErrNoCall is returned by Checkpoint outside a deployer call.
var ErrNoCall = errors.New("not in a deployer call of the library")

// Checkpoint stores what the deployer has put into the item's status so far
// (provider status, export reference, conditions), and what it noted in
// patch.FromContext, before it goes on: one write for the status and one for
// the metadata, none when nothing changed. Phase, errors and job fields are
// never written. ctx is the context of the deployer call. It must not run while
// another goroutine changes the item.
// Errors: ErrSuperseded when the job is no longer ours; a provider status that
// cannot be stored; a patch that cannot be made (it is dropped); what the API
// server says, with ERR_CONFIGURATION_PROBLEM when the item would be too large:
// returned by the deployer, that ends the run.
func Checkpoint(ctx context.Context) error {
	a := callFrom(ctx)
	if a == nil {
		return ErrNoCall
	}
	if a.inflight.Abandoned() || errors.Is(context.Cause(ctx), ErrInterrupted) {
		return ErrSuperseded
	}
	err := a.session.Checkpoint(ctx)
	if errors.Is(err, ErrSuperseded) {
		return ErrSuperseded
	}
	return err
}

// StoredPhase returns the phase that the item has in the cluster. A deployer
// call is always handed Init (Delete: InitDelete under the job-ID revision),
// whatever is stored: Init on the first call of a run, Progressing once it
// asked to be called again, and a final phase in a background run. Empty
// outside a deployer call.
func StoredPhase(ctx context.Context) lsv1alpha1.DeployItemPhase {
	if a := callFrom(ctx); a != nil {
		return a.session.Stored().Status.Phase
	}
	return ""
}
