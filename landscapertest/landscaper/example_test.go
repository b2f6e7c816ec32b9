// SPDX-License-Identifier: Apache-2.0

package landscaper_test

import (
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

// A test starts a control plane and the real Landscaper on it. Both are stopped at the end of the test.
func ExampleStartLandscaper() {
	test := func(t *testing.T) {
		cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cp.Stop(); err != nil {
				t.Error(err)
			}
		})
		landscaper.StartLandscaper(t, cp, landscaper.Options{PickupTimeout: 10 * time.Second})
		// Start the deployer, and apply Installations with a client for cp.Config.
	}
	_ = test
}
