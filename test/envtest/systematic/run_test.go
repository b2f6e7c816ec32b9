// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// run is one run of the scenario, in its own namespace.
type run struct {
	*recordingTB
	subject  *subject
	ns       string
	key      types.NamespacedName
	ls       *landscapertest.Landscaper
	registry *registry
	history  *conformance.History
	foreign  map[string]string // resourceVersions of the foreign objects
	jobs     int               // number of requested jobs, except for the job that deletes the item
}

// recordingTB is a GinkgoTB for one of several runs in a spec. It collects the messages of failed assertions instead of
// failing the spec. It calls the cleanup functions when the run ends.
type recordingTB struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	faults   []string
}

func (e *recordingTB) Helper()             {}
func (e *recordingTB) Log(...any)          {}
func (e *recordingTB) Logf(string, ...any) {}

func (e *recordingTB) Cleanup(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cleanups = append(e.cleanups, f)
}

func (e *recordingTB) Errorf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
}

func (e *recordingTB) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	runtime.Goexit()
}

// cleanUp calls the cleanup functions and returns the messages of all failed assertions.
func (e *recordingTB) cleanUp() []string {
	for _, v := range slices.Backward(e.cleanups) {
		v()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.faults
}

// runScenario runs the scenario of a subject on a faulty network. It returns the report of the network and a message
// for each violation that was found in the run.
func (s *subject) runScenario(ctx context.Context, scenario faultnet.Scenario) (faultnet.Report, []string) {
	r := &run{recordingTB: &recordingTB{TB: GinkgoTB()}, subject: s, registry: &registry{accounts: map[string]string{}}}
	var report faultnet.Report
	done := make(chan struct{})
	go func() { // the run needs its own goroutine, because Fatalf ends the goroutine in which it is called
		defer close(done)
		defer GinkgoRecover()
		if err := r.begin(ctx); err != nil {
			r.Fatalf("set-up: %v", err)
		}
		network := faultnet.Start(r, scenario)
		defer func() { report = network.Report() }()
		if err := r.runUntilDone(ctx, network); err != nil {
			r.Errorf("%v\n%s", err, r.history)
		}
		for _, fault := range r.checkInvariants(ctx) {
			r.Errorf("%s", fault)
		}
		r.history.Stop()
	}()
	<-done
	return report, r.cleanUp()
}

// runUntilDone runs the scenario with a process that the network may kill. If the process is killed, a new process
// continues.
func (r *run) runUntilDone(ctx context.Context, network *faultnet.Network) error {
	stop := landscapertest.RunWithRestart(r, network, r.startProcess)
	defer stop()
	return r.runSteps(ctx)
}

// startProcess starts the deployer for the items of the namespace. The network can disconnect the deployer, as if its
// process were killed.
func (r *run) startProcess(network *faultnet.Network) *landscapertest.Manager {
	args := r.subject.args(line{r.registry, network})
	return landscapertest.StartManager(r, network.Wrap(cp.Config), args, landscapertest.WithOptions(func(o *ctrl.Options) {
		o.Cache.DefaultNamespaces = map[string]cache.Config{r.ns: {}}
	}))
}

// getType returns the type of the item.
func (r *run) getType() lsv1alpha1.DeployItemType { return r.subject.args(line{}).Type }

// begin creates the namespace and everything else that must exist before the first step of the scenario. It also starts
// the recording.
func (r *run) begin(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "systematic-"}}
	if err := c.Create(ctx, ns); err != nil {
		return err
	}
	r.ns, r.key = ns.Name, types.NamespacedName{Namespace: ns.Name, Name: itemName}
	options := world.RevisionOf(r.subject.revision).ToLandscaperOptions()
	options.Poll = look
	r.ls = landscapertest.NewLandscaper(client.WithFieldOwner(c, "landscaper"), options)
	if err := r.ls.EnsureContext(ctx, r.ns); err != nil {
		return err
	}
	var err error
	if r.history, err = conformance.Record(ctx, c, r.ns, r.subject.revision); err != nil {
		return err
	}
	return errors.Join(r.createTarget(ctx), r.createForeignObjects(ctx))
}

func (r *run) createTarget(ctx context.Context) error {
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(cp.Kubeconfig())})
	if err != nil {
		return err
	}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	return c.Create(ctx, target)
}

// foreignItems are the names of items of another deployer.
var foreignItems = []string{"item-2", "items"}

// createForeignObjects creates objects and items that the deployer must not change. Some of them look as if they
// belonged to the deployer.
func (r *run) createForeignObjects(ctx context.Context) error {
	r.foreign = map[string]string{}
	for name, labels := range map[string]map[string]string{
		"unowned": nil, "item": nil, "item-main-2": nil, "item-settings": nil, "item-2-main": {ownership.LabelItem: "00000000-0000-0000-0000-000000000001"},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: name, Labels: labels}, Data: map[string]string{"value": "theirs"}}
		secret := &corev1.Secret{ObjectMeta: *cm.ObjectMeta.DeepCopy(), StringData: cm.Data}
		if err := errors.Join(c.Create(ctx, cm), c.Create(ctx, secret)); err != nil {
			return err
		}
		r.foreign["ConfigMap "+name], r.foreign["Secret "+name] = cm.ResourceVersion, secret.ResourceVersion
	}
	for _, name := range foreignItems {
		di := r.ls.Item(r.ns, name, "example.com/foreign", r.subject.config(r.ns, first, false))
		if err := r.ls.Deploy(ctx, di); err != nil {
			return err
		}
		di, err := r.ls.Get(ctx, client.ObjectKeyFromObject(di))
		if err != nil {
			return err
		}
		r.foreign["DeployItem "+name] = di.ResourceVersion
	}
	return nil
}

// isForeign reports whether an object was created by someone other than the deployer.
func (r *run) isForeign(kind string, obj client.Object) bool {
	_, planted := r.foreign[kind+" "+obj.GetName()]
	return planted || obj.GetName() == "the-end"
}
