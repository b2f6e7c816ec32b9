// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"testing"

	"github.com/deployerkit/deployerkit/deployers/mock"
)

// TestLeaderElectionOfDeployer checks that the deployer knows whether its manager elects a leader.
func TestLeaderElectionOfDeployer(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		args := mock.Args(nil)
		args.Default()
		o := Options{Election: Election{Disabled: disabled}}
		o.setDefaults(&args)
		if args.LeaderElection == disabled {
			t.Errorf("with Disabled %t, LeaderElection is %t", disabled, args.LeaderElection)
		}
	}
}
