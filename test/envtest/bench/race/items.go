// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// NewBareDeployer returns a contender with a hand-written loop that sends the same requests as Deployer. The loop
// writes the start and the end of each job. These writes contain the resourceVersion. It stores the list of managed
// resources that Landscaper knows in the status, and sends the same patches as NewBare. It reads from the cache of a
// manager and has AtOnce workers. It does not handle drift, deletion, timeouts, conflicts or errors.
func NewBareDeployer() Contender {
	return newJobContender("bare deployer", addLoop)
}

// NewWatchingDeployer is like NewBareDeployer, but also watches the metadata of the objects, as Deployer does to detect
// drift. It stores the metadata in the cache of its manager and does nothing with it.
func NewWatchingDeployer() Contender {
	return newJobContender("bare deployer with a watch", func(d *deployer, mgr ctrl.Manager) error {
		objects := &metav1.PartialObjectMetadata{}
		objects.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if _, err := mgr.GetCache().GetInformer(context.Background(), objects, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch ConfigMaps: %w", err)
		}
		return addLoop(d, mgr)
	})
}

// addLoop adds the hand-written loop to a manager.
func addLoop(d *deployer, mgr ctrl.Manager) error {
	connect := sync.OnceValues(func() (client.Client, error) { return NewClient(d.ControlPlane.Config) })
	l := &loop{client: mgr.GetClient(), connect: connect, items: map[string]Item{}}
	for _, owner := range d.owners {
		l.items[owner.Name] = Item{Owner: owner}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bare").For(&lsv1alpha1.DeployItem{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: AtOnce}).Complete(l)
}

type loop struct {
	client  client.Client
	connect func() (client.Client, error) // returns the client of the target
	items   map[string]Item
	done    sync.Map // IDs of finished jobs; these jobs are not started again, even if the cache is outdated
}

// Reconcile sends the requests of a job unless the job is finished.
func (l *loop) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := l.client.Get(ctx, req.NamespacedName, di); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, done := l.done.Load(di.Status.JobID); done || di.Status.JobID == di.Status.JobIDFinished {
		return ctrl.Result{}, nil
	}
	objects, err := objectsOf(di)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := l.begin(ctx, di, objects); err != nil {
		return ctrl.Result{}, err
	}
	if err := l.apply(ctx, l.items[di.Name], objects); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, l.completeJob(ctx, di, objects)
}

// objectsOf decodes the configuration of an item.
func objectsOf(di *lsv1alpha1.DeployItem) ([]*unstructured.Unstructured, error) {
	var config struct {
		Manifests []struct {
			Manifest map[string]any `json:"manifest"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(di.Spec.Configuration.Raw, &config); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	out := make([]*unstructured.Unstructured, len(config.Manifests))
	for i, m := range config.Manifests {
		out[i] = &unstructured.Unstructured{Object: m.Manifest}
	}
	return out, nil
}

// begin adds the finalizer if Landscaper has not set it, and then writes the start of the job. Before the first
// installation, begin also stores the list of the objects.
func (l *loop) begin(ctx context.Context, di *lsv1alpha1.DeployItem, objects []*unstructured.Unstructured) error {
	base := di.DeepCopy()
	if controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer) {
		if err := l.client.Patch(ctx, di, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("add finalizer: %w", err)
		}
	}
	now := metav1.Now()
	noted := di.Status.ProviderStatus != nil
	if err := l.status(ctx, di, nil, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.ObservedGeneration, s.LastReconcileTime = lsv1alpha1.DeployItemPhases.Progressing, di.Generation, &now
		s.Deployer = lsv1alpha1.DeployerInformation{Name: "bare", Identity: "bare", Version: "v0"}
		s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: s.TransitionTimes.TriggerTime, InitTime: &now}
	}); err != nil || noted {
		return err
	}
	return l.status(ctx, di, objects, func(*lsv1alpha1.DeployItemStatus) {})
}

// apply applies all objects of an item.
func (l *loop) apply(ctx context.Context, item Item, objects []*unstructured.Unstructured) error {
	target, err := l.connect()
	if err != nil {
		return err
	}
	owner := client.FieldOwner(item.Owner.FieldManager())
	return Each(ctx, Concurrency, objects, func(ctx context.Context, _ int, o *unstructured.Unstructured) error {
		item.Owner.Mark(o)
		if err := target.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", o.GetName(), err)
		}
		return nil
	})
}

// completeJob writes the end of the job, together with the UIDs of the objects.
func (l *loop) completeJob(ctx context.Context, di *lsv1alpha1.DeployItem, objects []*unstructured.Unstructured) error {
	now := metav1.Now()
	err := l.status(ctx, di, objects, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.JobIDFinished = lsv1alpha1.DeployItemPhases.Succeeded, s.JobID
		s.TransitionTimes.FinishedTime = &now
	})
	if err == nil {
		l.done.Store(di.Status.JobID, nil)
	}
	return err
}

// status changes the status in one write. If objects is not nil, the same write stores the list of these objects.
func (l *loop) status(
	ctx context.Context, di *lsv1alpha1.DeployItem, objects []*unstructured.Unstructured, change func(*lsv1alpha1.DeployItemStatus),
) error {
	base := di.DeepCopy()
	change(&di.Status)
	if objects != nil {
		raw, err := managed(objects)
		if err != nil {
			return err
		}
		di.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	}
	if err := l.client.Status().Patch(ctx, di, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// managed returns a provider status with the list of managed resources, in the format of Landscaper's manifest
// deployer.
func managed(objects []*unstructured.Unstructured) ([]byte, error) {
	status := manifestv1alpha2.ProviderStatus{TypeMeta: metav1.TypeMeta{
		APIVersion: manifestv1alpha2.SchemeGroupVersion.String(), Kind: "ProviderStatus",
	}}
	for _, o := range objects {
		status.ManagedResources = append(status.ManagedResources, managedresource.ManagedResourceStatus{
			Policy: managedresource.ManagePolicy,
			Resource: corev1.ObjectReference{
				APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
			},
		})
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return raw, nil
}
