// SPDX-License-Identifier: Apache-2.0

// Package conformance_test checks the deployers of this module against the contract, and tests the conformance suite.
package conformance_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/conformance"
)

// mockProgram and deployerkit are the paths of programs that are built for the suite.
var mockProgram, deployerkit string

func TestConformance(t *testing.T) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(time.Minute)
	conformance.Run(t, mockDeployer(), manifestDeployer(), declarativeDeployer(), stategraphDeployer())
}

var _ = BeforeSuite(func() {
	var err error
	mockProgram, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/mock-deployer")
	Expect(err).NotTo(HaveOccurred())
	deployerkit, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/deployerkit")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
})
