// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestLimits(t *testing.T) {
	world.RunWithLog(t, "limits", logr.Discard())
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
})
