// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

// stability notices handlers whose children change although nothing changed. It is safe for concurrent use.
type stability struct{}

// unstable is what stability says about one call of a handler.
type unstable struct {
	// Paths are the fields that changed, such as "Deployment.apps shop/web .spec.replicas". Empty: nothing is wrong.
	Paths []string
	// Delay is how long the next call should wait.
	Delay time.Duration
}

func newStability() *stability { return &stability{} }

// observe is called after each call of a handler for an item.
func (s *stability) observe(req *SyncRequest, desired []apply.Desired) unstable { return unstable{} }

// forget drops what is known about an item.
func (s *stability) forget(item types.UID) {}
