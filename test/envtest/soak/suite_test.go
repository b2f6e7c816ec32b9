// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/format"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	duration = flag.Duration("soak.duration", 30*time.Second, "how long things go wrong; from 2m on the API server is restarted twice and etcd is away for 10s")
	count    = flag.Int("soak.items", 100, "how many items there are")
	seed     = flag.Uint64("soak.seed", 0, "decides what happens; 0: Ginkgo's seed")
	logs     = flag.String("soak.logs", "", "directory for the logs of the replicas; empty: nowhere")
)

const (
	// patience is the time limit of all waits. It is long, because the machine may be slow.
	patience = 3 * time.Minute
	// quiet is the time during which nothing may be written after everything has come to rest.
	quiet = 3 * time.Second
)

var cp *controlplane.ControlPlane

// TestMain runs the suite or, if the environment of a replica is set, a replica.
func TestMain(m *testing.M) {
	flag.Parse()
	if path := os.Getenv(kubeconfigEnv); path != "" {
		os.Exit(mainReplica(path))
	}
	os.Exit(m.Run())
}

func TestSoak(t *testing.T) {
	format.MaxLength = 0 // no limit, so that an item is shown completely
	world.RunWithLog(t, "soak", logr.Discard())
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
})
