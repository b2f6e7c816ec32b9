// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const (
	patience = 2 * time.Minute        // time limit for something that must happen
	moment   = 500 * time.Millisecond // time during which something must not happen
)

// cp is the control plane of all specs.
var cp *controlplane.ControlPlane

// TestMain runs the suite or, if the environment of a replica is set, a replica of a deployer.
func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(replicaEnv); kubeconfig != "" {
		os.Exit(mainReplica(kubeconfig))
	}
	os.Exit(m.Run())
}

func TestFaults(t *testing.T) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(moment)
	SetDefaultConsistentlyPollingInterval(10 * time.Millisecond)
	world.RunWithLog(t, "faults", logr.Discard())
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
})
