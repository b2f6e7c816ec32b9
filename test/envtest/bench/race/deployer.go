// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// firstItem is the name of the item with which a contender connects to the target.
const firstItem = "first"

// NewDeployer returns a contender that runs the complete manifest deployer with AtOnce workers. The measured time
// includes the wait for readiness. The deployer may send as many requests at the same time as the other contenders. It
// knows that Landscaper uses job IDs, so it does not process a new item before the first job.
func NewDeployer() Contender {
	return newJobContender("manifest deployer", func(d *deployer, mgr ctrl.Manager) error {
		args := manifest.Args(nil, manifest.Options{
			Targets: targets.Policy{AllowPrivateHosts: true}, TargetLimits: targets.Limits{Requests: AtOnce * Concurrency},
		})
		args.Type, args.Registerer, args.Options.MaxConcurrentReconciles = d.itemType(), prometheus.NewRegistry(), AtOnce
		args.Revision = contract.RevisionJobID
		return deployerlib.Add(logr.Discard(), mgr, nil, args)
	})
}

// newJobContender returns a contender that works on deploy items. The function `add` registers the controller of the
// contender. The measured time begins when the first job is handed out and ends when the last job is finished. Before
// that, the contender finishes one small job, so that it is connected to the target like every other contender.
func newJobContender(name string, add func(d *deployer, mgr ctrl.Manager) error) Contender {
	return Contender{Name: name, Start: func(ctx context.Context, field *Workload) (Runner, error) {
		d := &deployer{Workload: field, ls: landscapertest.NewLandscaper(field.client, landscapertest.LandscaperOptions{})}
		if err := d.prepare(ctx); err != nil {
			return nil, err
		}
		mgr, err := d.newManager()
		if err != nil {
			return nil, err
		}
		if err := add(d, mgr); err != nil {
			return nil, err
		}
		if err := d.start(ctx, mgr); err != nil {
			return nil, err
		}
		if err := d.runFirstItem(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("first job: %w", err), d.Stop())
		}
		return d, nil
	}}
}

type deployer struct {
	*Workload

	ls      *landscapertest.Landscaper
	loaded  bool
	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  error // the error with which the manager ended
}

// itemType returns a type that only this field uses, so that the deployer ignores other items.
func (d *deployer) itemType() lsv1alpha1.DeployItemType {
	return lsv1alpha1.DeployItemType("manifest.deployerkit.dev/" + d.Namespace)
}

// prepare creates the Context and the Target.
func (d *deployer) prepare(ctx context.Context) error {
	if err := d.ls.EnsureContext(ctx, d.Namespace); err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(d.ControlPlane.Kubeconfig())})
	if err != nil {
		return fmt.Errorf("encode Target: %w", err)
	}
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "cluster"}}
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(raw)
	if err := d.client.Create(ctx, target); err != nil {
		return fmt.Errorf("create Target: %w", err)
	}
	return nil
}

func (d *deployer) newManager() (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(d.ControlPlane.Config, ctrl.Options{
		Scheme: d.client.Scheme(), Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{d.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	return mgr, nil
}

// start starts the manager and returns when its caches are filled.
func (d *deployer) start(ctx context.Context, mgr ctrl.Manager) error {
	ctx, d.cancel = context.WithCancel(ctx)
	d.running.Go(func() { d.failed = mgr.Start(ctx) })
	if _, err := mgr.GetCache().GetInformer(ctx, &lsv1alpha1.DeployItem{}); err != nil {
		return errors.Join(fmt.Errorf("fill caches: %w", err), d.Stop())
	}
	return nil
}

// Load creates the items or changes their configuration. The deployer does not process an item until the item gets a
// job.
func (d *deployer) Load(ctx context.Context, items []Item) error {
	err := Each(ctx, AtOnce, items, func(ctx context.Context, _ int, item Item) error {
		if d.loaded {
			return d.ls.Update(ctx, types.NamespacedName{Namespace: d.Namespace, Name: item.Owner.Name}, configOf(item.Objects))
		}
		return d.create(ctx, item.Owner.Name, item.Objects)
	})
	d.loaded = true
	return err
}

// create creates an item.
func (d *deployer) create(ctx context.Context, name string, objects []*unstructured.Unstructured) error {
	di := d.ls.Item(d.Namespace, name, d.itemType(), configOf(objects))
	di.Spec.Target = &lsv1alpha1.ObjectReference{Name: "cluster"}
	return d.ls.Create(ctx, di)
}

// configOf returns the configuration of an item.
func configOf(objects []*unstructured.Unstructured) map[string]any {
	manifests := make([]any, len(objects))
	for i, o := range objects {
		manifests[i] = map[string]any{"policy": "manage", "manifest": o}
	}
	return map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration", "manifests": manifests,
	}
}

// runFirstItem finishes a job of an item that takes no part in the benchmark.
func (d *deployer) runFirstItem(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	object := configMap(d.Namespace, firstItem, "one")
	object.SetLabels(nil) // Workload.check ignores it
	if err := d.create(ctx, firstItem, []*unstructured.Unstructured{object}); err != nil {
		return err
	}
	return d.Run(ctx)
}

// Run starts a job for each loaded item and waits until all jobs have finished. Before the first call of Load, it does
// so for the item that connect creates.
func (d *deployer) Run(ctx context.Context) error {
	list := &lsv1alpha1.DeployItemList{}
	if err := d.client.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return fmt.Errorf("list items: %w", err)
	}
	items := slices.DeleteFunc(list.Items, func(di lsv1alpha1.DeployItem) bool { return d.loaded && di.Name == firstItem })
	w, err := d.client.Watch(ctx, &lsv1alpha1.DeployItemList{}, client.InNamespace(d.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watch items: %w", err)
	}
	defer w.Stop()
	open, err := d.startJobs(ctx, items)
	if err != nil {
		return err
	}
	for len(open) > 0 {
		select {
		case e := <-w.ResultChan():
			di, ok := e.Object.(*lsv1alpha1.DeployItem)
			if !ok {
				return fmt.Errorf("the watch ended: %v", e.Object)
			}
			if di.Status.JobIDFinished != open[di.Name] {
				continue
			}
			if di.Status.Phase != lsv1alpha1.DeployItemPhases.Succeeded {
				return fmt.Errorf("%s is %s: %v", di.Name, di.Status.Phase, di.Status.GetLastError())
			}
			delete(open, di.Name)
		case <-ctx.Done():
			return fmt.Errorf("%d items are not finished: %w", len(open), ctx.Err())
		}
	}
	return nil
}

// startJobs starts a job for each item, and returns the IDs of the jobs. The keys are the names of the items.
func (d *deployer) startJobs(ctx context.Context, items []lsv1alpha1.DeployItem) (map[string]string, error) {
	ids := make([]string, len(items))
	err := Each(ctx, AtOnce, items, func(ctx context.Context, i int, di lsv1alpha1.DeployItem) (err error) {
		ids[i], err = d.ls.Trigger(ctx, client.ObjectKeyFromObject(&di))
		return err
	})
	open := make(map[string]string, len(items))
	for i := range items {
		open[items[i].Name] = ids[i]
	}
	return open, err
}

func (d *deployer) Stop() error {
	d.cancel()
	d.running.Wait()
	return d.failed
}
