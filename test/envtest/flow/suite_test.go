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
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
)

func TestFlow(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(600 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "flow")
}

// env is the control plane of one revision.
type env struct {
	revision contract.Revision
	crds     func() []*apiextv1.CustomResourceDefinition
	cp       *controlplane.ControlPlane
	scheme   *runtime.Scheme
	watcher  client.WithWatch
	client   client.Client // what Landscaper and people do
}

// container is one group of specs, made anew for each revision.
type container struct {
	title string
	body  func(e *env)
}

var containers []container

// flow registers a group of specs that runs under both revisions.
func flow(title string, body func(e *env)) bool {
	containers = append(containers, container{title, body})
	return true
}

var _ = Describe("the flow under the annotation revision", Ordered, ContinueOnFailure, func() {
	underRevision(&env{revision: contract.Annotation, crds: controlplane.ClassicCRDs})
})

var _ = Describe("the flow under the job-ID revision", Ordered, ContinueOnFailure, func() {
	underRevision(&env{revision: contract.JobID, crds: controlplane.CRDs})
})

// underRevision makes all groups of specs for one revision.
func underRevision(e *env) {
	BeforeAll(func(ctx context.Context) {
		var err error
		e.cp, err = controlplane.Start(ctx, controlplane.Options{CRDs: e.crds(), Progress: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.cp.Stop)
		e.scheme = runtime.NewScheme()
		Expect(clientgoscheme.AddToScheme(e.scheme)).To(Succeed())
		Expect(lsv1alpha1.AddToScheme(e.scheme)).To(Succeed())
		c, err := client.NewWithWatch(e.cp.Config, client.Options{Scheme: e.scheme})
		Expect(err).NotTo(HaveOccurred())
		e.watcher, e.client = c, client.WithFieldOwner(c, landscaperManager)
		e.awaitWatches(ctx)
	})
	for _, c := range containers {
		Describe(c.title, func() { c.body(e) })
	}
}

// awaitWatches waits until the API server serves watches: after its start the first events take a while, and a spec that
// sees to it that nothing happens would see nothing.
func (e *env) awaitWatches(ctx context.Context) {
	GinkgoHelper()
	events, err := e.watcher.Watch(ctx, &lsv1alpha1.DeployItemList{})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	probe := &lsv1alpha1.DeployItem{}
	probe.Namespace, probe.Name, probe.Spec.Type = metav1.NamespaceDefault, "probe", "flow.deployerkit.dev/probe"
	Expect(e.client.Create(ctx, probe)).To(Succeed())
	Eventually(events.ResultChan()).WithContext(ctx).Should(Receive())
}

// jobs tells whether the specs run under the job-ID revision.
func (e *env) jobs() bool { return e.revision == contract.JobID }
