// SPDX-License-Identifier: Apache-2.0

// Package world is the base of the suites below test/envtest. It runs a suite, starts its control plane, and provides
// each spec with a [World]: a namespace with its own Landscaper, Target and deployer.
package world

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Patience is the time limit of each wait. It is long because the machine may be busy.
const Patience = 2 * time.Minute

// Slow is the label of specs that take longer than about six seconds. They do not run if the flag -short is set.
var Slow = Label("slow")

// Run runs the specs of a suite. The libraries log to the output of the suite.
func Run(t *testing.T, title string) { RunWithLog(t, title, GinkgoLogr) }

// RunWithLog runs the specs of a suite like Run, but the libraries write their log messages to the given logger.
func RunWithLog(t *testing.T, title string, log logr.Logger) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	suite, reporter := GinkgoConfiguration()
	if testing.Short() {
		suite.LabelFilter = "!slow"
	}
	RunSpecs(t, title, suite, reporter)
}

// StartControlPlane starts a control plane. The control plane is stopped at the end of the suite or of the container
// that calls StartControlPlane.
func StartControlPlane(ctx context.Context, o controlplane.Options) *controlplane.ControlPlane {
	GinkgoHelper()
	o.Progress = GinkgoWriter
	cp, err := controlplane.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	return cp
}

// NewClient returns a client that has no cache and knows the types of Kubernetes and Landscaper.
func NewClient(t testing.TB, cfg *rest.Config) client.WithWatch {
	t.Helper()
	g := NewWithT(t)
	scheme, err := landscapertest.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}
