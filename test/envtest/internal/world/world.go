// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Cluster is the name of the Target that refers to the control plane.
const Cluster = "cluster"

// Options configures a World.
type Options struct {
	// Name is the prefix of the namespace and of the item type.
	Name string
	// Landscaper configures the Landscaper of the world.
	Landscaper landscapertest.LandscaperOptions
	// NoTarget specifies that the World has no Target. Its items then refer to no Target.
	NoTarget bool
	// Patience is the time limit of all waits. The default is the constant Patience.
	Patience time.Duration
}

// World is the environment of a spec, test or benchmark. It consists of a namespace with a Context and a Target for the
// control plane, a simulated Landscaper, and an item type. Each World has its own item type, so deployers of other
// specs ignore its items. If an error occurs, the methods of World fail the spec.
type World struct {
	Client     client.WithWatch
	Landscaper *landscapertest.Landscaper
	Namespace  string
	// Type is the type of the items.
	Type lsv1alpha1.DeployItemType
	// Config is the client config for deployers that Start runs. By default, it has administrator rights.
	Config *rest.Config
	// Counter counts the requests of those clients whose transport it wraps. A spec uses it, for example, to count
	// requests to the Target.
	Counter *faultnet.Counter
	// Manager is the manager that Start started last.
	Manager *landscapertest.Manager

	t       testing.TB
	options Options
}

// New creates a world on a control plane.
func New(ctx context.Context, t testing.TB, cp *controlplane.ControlPlane, o Options) *World {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = Patience
	}
	o.Landscaper.Revision = cmp.Or(o.Landscaper.Revision, contract.RevisionJobID)
	w := &World{t: t, options: o, Client: NewClient(t, cp.Config), Config: cp.Config, Counter: &faultnet.Counter{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: o.Name + "-"}}
	w.must(w.Client.Create(ctx, ns))
	w.Namespace, w.Type = ns.Name, lsv1alpha1.DeployItemType(o.Name+".deployerkit.dev/"+ns.Name)
	t.Cleanup(func() { w.removeItems(context.WithoutCancel(ctx)) })
	w.Landscaper = landscapertest.NewLandscaper(w.Client, o.Landscaper)
	w.must(w.Landscaper.EnsureContext(ctx, w.Namespace))
	if !o.NoTarget {
		w.CreateTarget(ctx, Cluster, cp.Kubeconfig())
	}
	return w
}

// removeItems removes the items of the world without a deployer. Otherwise, each deployer of a later spec would read
// them, because a deployer watches the items of all types.
func (w *World) removeItems(ctx context.Context) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, w.options.Patience)
	defer cancel()
	items := &metav1.PartialObjectMetadataList{}
	items.SetGroupVersionKind(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItemList"))
	w.must(w.Client.List(ctx, items, client.InNamespace(w.Namespace)))
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for i := range items.Items {
		w.must(client.IgnoreNotFound(w.Client.Delete(ctx, &items.Items[i])))
		w.must(client.IgnoreNotFound(w.Client.Patch(ctx, &items.Items[i], noFinalizers)))
	}
}

// must fails the spec if err is not nil.
func (w *World) must(err error) {
	w.t.Helper()
	NewWithT(w.t).Expect(err).NotTo(HaveOccurred())
}

// CreateTarget creates a Target that contains a kubeconfig.
func (w *World) CreateTarget(ctx context.Context, name string, kubeconfig []byte) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	w.must(err)
	w.must(w.Client.Create(ctx, &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)},
	}))
}

// Start runs a deployer for the items of the world until the spec ends or the manager is stopped.
func (w *World) Start(args deployerlib.DeployerArgs, options ...landscapertest.ManagerOption) {
	w.t.Helper()
	args.Type = w.Type
	w.Manager = landscapertest.StartManager(w.t, w.Config, args, options...)
}

// Key returns the key of an item, or of another object of the namespace.
func (w *World) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: name}
}

// Item returns a new item without creating it in the cluster.
func (w *World) Item(name string, config any, changes ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	di := w.Landscaper.Item(w.Namespace, name, w.Type, config)
	if !w.options.NoTarget {
		di.Spec.Target = &lsv1alpha1.ObjectReference{Name: Cluster}
	}
	for _, change := range changes {
		change(di)
	}
	return di
}

// Create creates an item and requests its first run.
func (w *World) Create(ctx context.Context, name string, config any, changes ...func(*lsv1alpha1.DeployItem)) {
	w.t.Helper()
	w.must(w.Landscaper.Deploy(ctx, w.Item(name, config, changes...)))
}

// CreateAndRun creates an item and waits for the end of its first run.
func (w *World) CreateAndRun(ctx context.Context, name string, config any, changes ...func(*lsv1alpha1.DeployItem)) *lsv1alpha1.DeployItem {
	w.t.Helper()
	w.Create(ctx, name, config, changes...)
	return w.Finished(ctx, name)
}

// Finished waits for the end of an item's run.
func (w *World) Finished(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	w.t.Helper()
	return w.waitFor(ctx, func(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
		return w.Landscaper.WaitUntilFinished(ctx, w.Key(name))
	})
}

// RunAgain requests another run of an item and waits for the end of this run.
func (w *World) RunAgain(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	w.t.Helper()
	job, err := w.Landscaper.Trigger(ctx, w.Key(name))
	w.must(err)
	return w.waitFor(ctx, func(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
		return w.Landscaper.WaitForJob(ctx, w.Key(name), job)
	})
}

// Update replaces the configuration of an item and waits for the end of the run that applies the new configuration.
func (w *World) Update(ctx context.Context, name string, config any) *lsv1alpha1.DeployItem {
	w.t.Helper()
	w.must(w.Landscaper.Update(ctx, w.Key(name), config))
	if !RevisionOf(w.options.Landscaper.Revision).Jobs {
		return w.Finished(ctx, name) // the update itself has requested the run
	}
	return w.RunAgain(ctx, name)
}

// Delete deletes an item and waits until it no longer exists.
func (w *World) Delete(ctx context.Context, name string) {
	w.t.Helper()
	w.waitFor(ctx, func(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
		return nil, w.Landscaper.Delete(ctx, w.Key(name))
	})
}

// Get reads an item.
func (w *World) Get(ctx context.Context, name string) *lsv1alpha1.DeployItem {
	w.t.Helper()
	return w.ReadItem(ctx, name)(NewWithT(w.t))
}

// waitFor calls f with the time limit of the world.
func (w *World) waitFor(ctx context.Context, f func(context.Context) (*lsv1alpha1.DeployItem, error)) *lsv1alpha1.DeployItem {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, w.options.Patience)
	defer cancel()
	di, err := f(ctx)
	w.must(err)
	return di
}
