// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// fieldFinalized notes, beside the inventory, that the handler has cleaned up.
const fieldFinalized = "finalized"

// finalized tells whether Finalize said that it is done: it is not called again while the children go.
func (s *providerStatus) finalized() bool { return string(s.more[fieldFinalized]) == "true" }

// finalize notes that Finalize is done.
func (s *providerStatus) finalize() {
	more := maps.Clone(s.more)
	if more == nil {
		more = map[string]json.RawMessage{}
	}
	more[fieldFinalized] = json.RawMessage("true")
	s.more = more
}

// finalize lets the handler clean up. nil: it is done.
func (r *run) finalize(ctx context.Context) error {
	seen, err := r.look(ctx)
	if err != nil {
		return err
	}
	req, err := NewRequest(r.item, r.target, seen...)
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
			reason = "the handler cleans up"
		}
		return deployerlib.WaitFor(contract.OneLine(reason, maxReason), response.Retry)
	}
	if r.status.finalize(); len(r.up.Inventory.Entries)+len(r.up.Inventory.Former) > 0 {
		return r.status.store(r.item) // told once, however long the children take to go
	}
	return nil
}

// askFinalizer calls Finalize, and takes over its status. It never returns nil without an error.
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
