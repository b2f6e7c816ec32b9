// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
)

// What the engine does with the children of an update strategy, and with those that say nothing but their name.
const (
	policyRetain     = apply.Policy("retain")
	strategyRecreate = apply.Strategy("recreate")
	strategyOnDelete = apply.Strategy("onDelete")
)

// Desired turns the children of a response into what the engine applies, without asking a cluster. owns tells which
// children get a reference to the item when Options.Tracking wants one; nil: none. Call Default first.
// Errors: apply.Errors with every fault of every child at once, with the path of the field.
func (o *Options) Desired(item *lsv1alpha1.DeployItem, response *SyncResponse, owns func(apply.Ref) bool) ([]apply.Desired, error) {
	return nil, nil
}

func read(child any) ([]map[string]any, error) { return nil, nil }
