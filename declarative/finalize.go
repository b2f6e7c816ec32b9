// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// fieldFinalized is the name of a field that the library adds to the provider status. It records that the handler has
// cleaned up.
const fieldFinalized = "finalized"

// isFinalized reports whether the handler has cleaned up. In this case, the handler is not called again while the
// children are being deleted.
func (s *providerStatus) isFinalized() bool { return string(s.more[fieldFinalized]) == "true" }

// finalize records that the handler has cleaned up.
func (s *providerStatus) finalize() {
	if s.more == nil {
		s.more = map[string]json.RawMessage{}
	}
	s.more[fieldFinalized] = json.RawMessage("true")
}

// finalize calls the handler to clean up. It returns nil if the handler is done.
func (r *run) finalize(ctx context.Context) error {
	seen, err := r.listChildren(ctx)
	if err != nil {
		return err
	}
	req, err := r.request(seen)
	if err != nil {
		return err
	}
	response, err := r.callFinalizer(ctx, req)
	if err != nil {
		return err
	}
	if response.Retry > 0 {
		reason := response.Reason
		if reason == "" {
			reason = "the handler is still cleaning up"
		}
		retry := r.deployer.limit.Apply(r.log, "FinalizeResponse.Retry", response.Retry)
		return deployerlib.WaitFor(contract.OneLine(reason, maxReason), retry)
	}
	if r.status.finalize(); len(r.managed.Inventory.Entries)+len(r.managed.Inventory.Former) > 0 {
		return r.status.store(r.item) // Finalize must not be called again while the children are being deleted
	}
	return nil
}

// callFinalizer calls Finalize and stores the status that it returns. If the error is nil, the response is not nil.
func (r *run) callFinalizer(ctx context.Context, req *SyncRequest) (*FinalizeResponse, error) {
	c := r.startCall(ctx, functionFinalize)
	defer c.recordEnd()
	response, err := r.deployer.finalizer.Finalize(ctx, req)
	if response == nil {
		response = &FinalizeResponse{}
	}
	c.err = err
	if statusErr := r.setStatus(response.Status); statusErr != nil {
		c.err = errors.Join(err, statusErr)
	}
	return response, c.err
}
