// SPDX-License-Identifier: Apache-2.0

// Package moves_test moves the items of all kinds of deployers between two clusters.
package moves_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// The control plane `here` is both the Landscaper cluster and the first target. The control plane `there` is the other
// cluster.
var here, there *controlplane.ControlPlane

// inThere is a client for the other cluster.
var inThere client.Client

func TestMoves(t *testing.T) {
	world.Run(t, "moves between clusters")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	here = world.StartControlPlane(ctx, controlplane.Options{})
	there = world.StartControlPlane(ctx, controlplane.Options{})
	inThere = world.NewClient(GinkgoTB(), there.Config)
	for _, cp := range []*controlplane.ControlPlane{here, there} {
		waitForKubeSystem(ctx, world.NewClient(GinkgoTB(), cp.Config))
	}
})

// waitForKubeSystem waits until the API server has created the namespace kube-system, whose UID identifies the cluster.
// The API server creates this namespace soon after its start.
func waitForKubeSystem(ctx context.Context, c client.Client) {
	GinkgoHelper()
	Eventually(func() error {
		return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}
