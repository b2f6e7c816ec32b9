// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"context"
	"encoding/json"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
)

type item = *lsv1alpha1.DeployItem

var phases = lsv1alpha1.DeployItemPhases

// poll is the interval at which a slow item is checked.
const poll = 50 * time.Millisecond

// configuration is the Go type of spec.config.
type configuration struct {
	metav1.TypeMeta `json:",inline"`

	Wrong string `json:"wrong,omitempty"`
	Slow  bool   `json:"slow,omitempty"`
}

// deployer is a conforming deployer for both revisions. It deploys a ConfigMap with the name of the item. It reads from
// the API server and stores no data in memory, so each reconcile depends only on the stored objects.
type deployer struct {
	client client.Client
	kind   lsv1alpha1.DeployItemType
}

func (d *deployer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := d.client.Get(ctx, req.NamespacedName, di); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if di.Spec.Type != d.kind {
		return reconcile.Result{}, nil
	}
	p := &reconciliation{deployer: d, di: di, base: di.DeepCopy()}
	ours, err := p.isResponsible(ctx)
	if err != nil || !ours {
		return reconcile.Result{}, err
	}
	again, err := p.do(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: poll}, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// reconciliation is one reconcile of an item.
type reconciliation struct {
	*deployer
	di, base item
	lost     bool // true if the Target of the item does not exist
}

// isResponsible reports whether the deployer is responsible for the item. This depends on a label of the Target. If the
// Target does not exist, the deployer is responsible if the status of the item names this deployer.
func (p *reconciliation) isResponsible(ctx context.Context) (bool, error) {
	ref := p.di.Spec.Target
	if ref == nil {
		return true, nil
	}
	target := &lsv1alpha1.Target{}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.di.Namespace, Name: ref.Name}, target)
	if p.lost = apierrors.IsNotFound(err); p.lost {
		return p.di.Status.Deployer.Name == string(p.kind), nil
	}
	return target.Labels["environment"] == "conformance", err
}

// do performs the next action for the item. It returns the time after which the item must be reconciled again.
func (p *reconciliation) do(ctx context.Context) (time.Duration, error) {
	switch op := p.getOperation(); {
	case p.di.Annotations[lsv1alpha1.IgnoreAnnotation] == "true" && p.isFinal(), p.isDeleting() && !contract.HasLandscaperFinalizer(p.di):
		return 0, nil
	case op == contract.AbortOperation:
		return 0, p.cancelRun(ctx)
	case op == lsv1alpha1.ForceReconcileOperation && p.hasJobs() && !p.isPending():
		return 0, p.reapply(ctx)
	case op == lsv1alpha1.TestReconcileOperation && p.hasJobs() && !p.isPending():
		p.newJob()
	case !p.isDue():
		return 0, nil
	case p.isUnchanged():
		p.fill()
		return 0, p.completeRun(ctx, phases.Succeeded, nil)
	}
	if p.fresh() {
		if err := p.begin(ctx); err != nil {
			return 0, err
		}
	}
	if p.isDeleting() {
		return 0, p.delete(ctx)
	}
	return p.applyConfigMap(ctx)
}

// applyConfigMap deploys the ConfigMap of the item.
func (p *reconciliation) applyConfigMap(ctx context.Context) (time.Duration, error) {
	c := configuration{}
	if err := json.Unmarshal(p.di.Spec.Configuration.Raw, &c); err != nil {
		return 0, p.setFailed(ctx, "Decode", err.Error(), lsv1alpha1.ErrorConfigurationProblem)
	}
	switch {
	case p.isTimedOut():
		return 0, p.setFailed(ctx, "Timeout", "it takes too long", lsv1alpha1.ErrorTimeout)
	case p.lost:
		return 0, p.setFailed(ctx, "TargetNotFound", "the Target is not there")
	case c.Wrong != "":
		return 0, p.setFailed(ctx, "Wrong", contract.OneLine("this is wrong: "+c.Wrong, 1024), lsv1alpha1.ErrorConfigurationProblem)
	}
	if err := p.install(ctx); err != nil {
		return 0, err
	}
	if c.Slow {
		p.di.Status.Phase = phases.Progressing
		return poll, p.save(ctx)
	}
	return 0, p.completeRun(ctx, phases.Succeeded, nil)
}

func (p *reconciliation) install(ctx context.Context) error {
	return client.IgnoreAlreadyExists(p.client.Create(ctx, p.configMap()))
}

// delete deletes the ConfigMap, unless Landscaper requests a deletion without uninstall, and removes the finalizer.
func (p *reconciliation) delete(ctx context.Context) error {
	if p.di.Annotations[lsv1alpha1.DeleteWithoutUninstallAnnotation] != "true" {
		if p.lost {
			return p.setFailed(ctx, "TargetNotFound", "cannot uninstall without the Target")
		}
		if err := p.client.Delete(ctx, p.configMap()); client.IgnoreNotFound(err) != nil {
			return p.setFailed(ctx, "Uninstall", err.Error())
		}
	}
	controllerutil.RemoveFinalizer(p.di, lsv1alpha1.LandscaperFinalizer)
	return p.saveMeta(ctx)
}

func (p *reconciliation) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.di.Namespace, Name: p.di.Name}}
}

// cancelRun ends the run of the item. It does not change a run that has already ended.
func (p *reconciliation) cancelRun(ctx context.Context) error {
	if !p.isFinal() {
		if err := p.setFailed(ctx, "Aborted", "the run was aborted"); err != nil {
			return err
		}
	}
	return p.updateMetadata(ctx)
}

// reapply deploys the ConfigMap again while no job is running.
func (p *reconciliation) reapply(ctx context.Context) error {
	if err := p.install(ctx); err != nil {
		return err
	}
	return p.updateMetadata(ctx)
}
