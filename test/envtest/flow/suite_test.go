// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestFlow(t *testing.T) {
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(600 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	world.Run(t, "flow")
}

// cluster is the control plane for one revision.
type cluster struct {
	revision contract.Revision
	crds     func() []*apiextv1.CustomResourceDefinition
	cp       *controlplane.ControlPlane
	scheme   *runtime.Scheme
	watcher  client.WithWatch
	client   client.Client // client with which the specs act as Landscaper and as users
}

// container is a group of specs that is created for each revision.
type container struct {
	title string
	body  func(e *cluster)
}

var containers []container

// registerSpecs registers a group of specs that run under both revisions.
func registerSpecs(title string, body func(e *cluster)) bool {
	containers = append(containers, container{title, body})
	return true
}

var _ = Describe("Default flow under the annotation revision", Ordered, ContinueOnFailure, func() {
	createSpecs(&cluster{revision: contract.RevisionAnnotation, crds: controlplane.AnnotationRevisionCRDs})
})

var _ = Describe("Default flow under the job-ID revision", Ordered, ContinueOnFailure, func() {
	createSpecs(&cluster{revision: contract.RevisionJobID, crds: controlplane.CRDs})
})

// createSpecs creates all groups of specs for one revision.
func createSpecs(e *cluster) {
	BeforeAll(func(ctx context.Context) {
		e.cp = world.StartControlPlane(ctx, controlplane.Options{CRDs: e.crds()})
		e.watcher = world.NewClient(GinkgoTB(), e.cp.Config)
		e.scheme, e.client = e.watcher.Scheme(), client.WithFieldOwner(e.watcher, landscaperManager)
		e.waitForWatches(ctx)
	})
	for _, c := range containers {
		Describe(c.title, func() { c.body(e) })
	}
}

// waitForWatches waits until the API server sends events. Directly after its start, the first events are late. A spec
// that requires that nothing happens could then miss an event and pass.
func (e *cluster) waitForWatches(ctx context.Context) {
	GinkgoHelper()
	events, err := e.watcher.Watch(ctx, &lsv1alpha1.DeployItemList{})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	probe := &lsv1alpha1.DeployItem{}
	probe.Namespace, probe.Name, probe.Spec.Type = metav1.NamespaceDefault, "probe", "flow.deployerkit.dev/probe"
	Expect(e.client.Create(ctx, probe)).To(Succeed())
	Eventually(events.ResultChan()).WithContext(ctx).Should(Receive())
}

// hasJobs reports whether Landscaper creates jobs in this revision.
func (e *cluster) hasJobs() bool { return world.RevisionOf(e.revision).Jobs }
