// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
)

const (
	// patience is the time limit of each wait.
	patience = 2 * time.Minute
	// pause is the time between two scrapes of a recording.
	pause = 300 * time.Millisecond

	mockProgram, manifestProgram, faultyProgram = "mock-deployer", "manifest-deployer", "faulty"
)

// world is a control plane on which programs run.
type world struct {
	cp         *controlplane.ControlPlane
	client     client.Client
	kubeconfig string
	programs   string // directory with the programs
}

// newWorld builds the programs and starts a control plane.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{programs: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", w.programs+string(filepath.Separator),
		"github.com/deployerkit/deployerkit/cmd/mock-deployer", "github.com/deployerkit/deployerkit/cmd/manifest-deployer", "./faulty")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var err error
	w.cp, err = controlplane.Start(t.Context(), controlplane.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, w.cp.Stop()) })
	w.cp.Config.QPS = -1
	scheme, err := landscapertest.Scheme()
	must(t, err)
	w.client, err = client.New(w.cp.Config, client.Options{Scheme: scheme})
	must(t, err)
	w.kubeconfig, err = w.cp.WriteKubeconfig("")
	must(t, err)
	return w
}

// scene is a namespace with one program.
type scene struct {
	*world
	t         *testing.T
	namespace string
	ls        *landscapertest.Landscaper
	count     int // of the items that deploy created

	recording recording
	stop      func() // kills the program
}

// newScene creates a namespace.
func (w *world) newScene(t *testing.T, namespace string) *scene {
	t.Helper()
	must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	s := &scene{world: w, t: t, namespace: namespace, ls: landscapertest.NewLandscaper(w.client, landscapertest.LandscaperOptions{DeployerType: true})}
	must(t, s.ls.EnsureContext(t.Context(), namespace))
	return s
}

// start starts a program for the items in the namespace and waits until it serves metrics. The program is killed at the
// end of the test. Arguments of the form NAME=value are environment variables.
func (s *scene) start(program string, args ...string) {
	s.t.Helper()
	s.recording.address = findFreeAddress(s.t)
	flags := []string{
		"--kubeconfig=" + s.kubeconfig, "--namespace=" + s.namespace, "--metrics-bind-address=" + s.recording.address,
		"--health-probe-bind-address=0", "--history-bind-address=0", "--grace-period=1s",
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), filepath.Join(s.programs, program), flags...) //nolint:gosec // built here
	cmd.Env = os.Environ()
	for _, arg := range args {
		if arg[0] == '-' {
			cmd.Args = append(cmd.Args, arg)
		} else {
			cmd.Env = append(cmd.Env, arg)
		}
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(s.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	s.stop = func() {
		_ = cmd.Process.Kill() // fails if the program has ended
		<-ended
	}
	s.t.Cleanup(func() {
		s.stop()
		if s.t.Failed() {
			s.t.Logf("%s %q:\n%s", program, cmd.Args[1:], log.Bytes()[max(0, log.Len()-5000):])
		}
	})
	s.wait("the program serves metrics", func() bool {
		_, err := s.recording.read(s.t.Context())
		return err == nil
	})
}

// wait waits until a condition holds.
func (s *scene) wait(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(pause) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not in time: %s", what)
		}
	}
}

// record scrapes the program n times, and calls the function each time before it scrapes.
func (s *scene) record(n int, act func(i int)) {
	s.t.Helper()
	for i := range n {
		if act != nil {
			act(i)
		}
		_ = s.recording.scrape(s.t.Context()) // recorded in the series up
		<-time.After(pause)
	}
}

// findFreeAddress returns an address on which nothing listens.
func findFreeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// change changes an item before it is created.
type change = func(*lsv1alpha1.DeployItem)

// withTarget sets the Target of an item.
func withTarget(name string) change {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Target = &lsv1alpha1.ObjectReference{Name: name} }
}

// withTimeout sets the timeout of an item.
func withTimeout(d time.Duration) change {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

// deploy creates an item and hands out its first job. It returns the item.
func (s *scene) deploy(itemType lsv1alpha1.DeployItemType, config map[string]any, changes ...change) *lsv1alpha1.DeployItem {
	s.t.Helper()
	s.count++
	di := s.ls.Item(s.namespace, fmt.Sprintf("item-%d", s.count), itemType, config)
	for _, change := range changes {
		change(di)
	}
	must(s.t, s.ls.Deploy(s.t.Context(), di))
	return di
}

// deployMock deploys an item of the mock deployer that ends in the given phase.
func (s *scene) deployMock(phase string, changes ...change) *lsv1alpha1.DeployItem {
	s.t.Helper()
	return s.deploy(mock.Type, map[string]any{
		"apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": phase,
	}, changes...)
}

// deployManifest deploys a ConfigMap with the name of the item.
func (s *scene) deployManifest(target string) *lsv1alpha1.DeployItem {
	s.t.Helper()
	return s.deploy(manifest.Type, map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{map[string]any{"policy": "manage", "manifest": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": "blue"},
			"metadata": map[string]any{"name": fmt.Sprintf("item-%d", s.count+1), "namespace": s.namespace},
		}}},
	}, withTarget(target))
}

// createTarget creates a Target.
func (s *scene) createTarget(name string, kubeconfig []byte) {
	s.t.Helper()
	raw, err := json.Marshal(map[string]string{"kubeconfig": string(kubeconfig)})
	must(s.t, err)
	must(s.t, s.client.Create(s.t.Context(), &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       lsv1alpha1.TargetSpec{Type: "landscaper.gardener.cloud/kubernetes-cluster", Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	}))
}

// waitForPhase waits until an item has one of the given phases.
func (s *scene) waitForPhase(di *lsv1alpha1.DeployItem, phases ...lsv1alpha1.DeployItemPhase) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%s is one of %q", di.Name, phases), func() bool {
		must(s.t, s.client.Get(s.t.Context(), client.ObjectKeyFromObject(di), di))
		return slices.Contains(phases, di.Status.Phase)
	})
}

// setColor changes the ConfigMap of an item, as another client would. It does nothing if the ConfigMap does not exist.
func (s *scene) setColor(di *lsv1alpha1.DeployItem, color string) {
	s.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: di.Namespace, Name: di.Name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"color":%q}}`, color))
	must(s.t, client.IgnoreNotFound(s.client.Patch(s.t.Context(), object, patch, client.FieldOwner("another-client"))))
}
