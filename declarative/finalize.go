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

// finalized reports whether the handler has cleaned up. In this case, the handler is not called again while the
// children are being deleted.
func (s *providerStatus) finalized() bool { return string(s.more[fieldFinalized]) == "true" }

// finalize records that the handler has cleaned up.
func (s *providerStatus) finalize() {
	if s.more == nil {
		s.more = map[string]json.RawMessage{}
	}
	s.more[fieldFinalized] = json.RawMessage("true")
}

// finalize calls the handler to clean up. It returns nil if the handler is done.
func (r *run) finalize(ctx context.Context) error {
	seen, err := r.look(ctx)
	if err != nil {
		return err
	}
	req, err := r.request(seen)
	if err != nil {
		return err
	}
	response, err := r.askFinalizer(ctx, req)
	if err != nil {
		return err
	}
	if response.Retry > 0 {
		reason := response.Reason
		if reason == "" {
			reason = "the handler is still cleaning up"
		}
		retry := r.deployer.limit.AtLeast(r.log, "FinalizeResponse.Retry", response.Retry)
		return deployerlib.WaitFor(contract.OneLine(reason, maxReason), retry)
	}
	if r.status.finalize(); len(r.up.Inventory.Entries)+len(r.up.Inventory.Former) > 0 {
		return r.status.store(r.item) // Finalize must not be called again while the children are being deleted
	}
	return nil
}

// askFinalizer calls Finalize and stores the status that it returns. If the error is nil, the response is not nil.
func (r *run) askFinalizer(ctx context.Context, req *SyncRequest) (*FinalizeResponse, error) {
	c := r.call(ctx, functionFinalize)
	defer c.end()
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
