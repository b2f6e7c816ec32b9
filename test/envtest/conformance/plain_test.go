// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/testtime"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const plainType lsv1alpha1.DeployItemType = "conformance.deployerkit.dev/plain"

// plainConfig is the Go type of spec.config for the plain deployer.
type plainConfig struct {
	metav1.TypeMeta `json:",inline"`

	Value string `json:"value,omitempty"`
	Wrong string `json:"wrong,omitempty"`
	Slow  bool   `json:"slow,omitempty"`
}

// plain is a simple deployer that uses only controller-runtime and deploys a ConfigMap. It works with Landscaper, but
// it implements only the obvious parts of the contract.
type plain struct{ client client.Client }

func (d *plain) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := d.client.Get(ctx, req.NamespacedName, di); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case di.Spec.Type != plainType:
		return reconcile.Result{}, nil
	case di.DeletionTimestamp != nil:
		return reconcile.Result{}, d.delete(ctx, di)
	case di.Status.JobID == di.Status.JobIDFinished:
		return reconcile.Result{}, nil
	}
	c := plainConfig{}
	if err := json.Unmarshal(di.Spec.Configuration.Raw, &c); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case c.Wrong != "":
		now := metav1.Now()
		di.Status.LastError = &lsv1alpha1.Error{
			Operation: "Reconcile", Reason: "Wrong", Message: "this is wrong: " + c.Wrong, LastTransitionTime: now, LastUpdateTime: now,
		}
		return reconcile.Result{}, d.completeJob(ctx, di, lsv1alpha1.DeployItemPhases.Failed)
	case c.Slow:
		di.Status.Phase = lsv1alpha1.DeployItemPhases.Progressing
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, d.client.Status().Update(ctx, di)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: di.Namespace, Name: di.Name}, Data: map[string]string{"value": c.Value}}
	if err := d.client.Create(ctx, cm); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, d.completeJob(ctx, di, lsv1alpha1.DeployItemPhases.Succeeded)
}

// completeJob ends the job with two writes of the status.
func (d *plain) completeJob(ctx context.Context, di *lsv1alpha1.DeployItem, phase lsv1alpha1.DeployItemPhase) error {
	di.Status.Phase = phase
	if err := d.client.Status().Update(ctx, di); err != nil {
		return err
	}
	di.Status.JobIDFinished = di.Status.JobID
	return d.client.Status().Update(ctx, di)
}

func (d *plain) delete(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: di.Namespace, Name: di.Name}}
	if err := d.client.Delete(ctx, cm); client.IgnoreNotFound(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	return d.client.Update(ctx, di)
}

// startPlain runs the plain deployer.
func startPlain(ctx context.Context, cfg *rest.Config) error {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("plain").For(&lsv1alpha1.DeployItem{}).Complete(&plain{client: mgr.GetClient()}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newPlainSubject returns the conformance subject for the plain deployer.
func newPlainSubject() conformance.Subject {
	making := func(c plainConfig) any {
		c.APIVersion, c.Kind = "conformance.deployerkit.dev/v1", "Plain"
		return c
	}
	return conformance.Subject{
		Name: "plain", Type: plainType, Start: startPlain,
		Target: func(*rest.Config) (lsv1alpha1.TargetSpec, error) {
			return lsv1alpha1.TargetSpec{Type: "conformance.deployerkit.dev/nowhere"}, nil
		},
		OtherTargetLabels: otherTargets,
		Valid:             func(types.NamespacedName) any { return making(plainConfig{Value: "1"}) },
		Invalid:           func(_ types.NamespacedName, note string) any { return making(plainConfig{Wrong: note}) },
		Slow:              func(types.NamespacedName) any { return making(plainConfig{Slow: true}) },
		Finish: func(ctx context.Context, c client.Client, key types.NamespacedName) error {
			return patchConfig(ctx, c, key, map[string]any{"slow": nil})
		},
		Deployed: configMapStands,
		Bounds:   conformance.Bounds{Finish: testtime.ScaleTimeout(10 * time.Second), Cleanup: 3 * time.Second},
		Options:  conformance.Options{Revisions: []contract.Revision{contract.RevisionJobID}, Logs: GinkgoWriter, Parallel: 16},
	}
}

var _ = Describe("Deployer that implements a part of the contract", func() {
	It("fails exactly the checks of the parts that it does not implement", world.Slow, func(ctx SpecContext) {
		report, err := conformance.Execute(ctx, newPlainSubject())
		Expect(err).NotTo(HaveOccurred())
		Expect(report.WriteTable(GinkgoWriter)).To(Succeed())
		Expect(report.ListFailed(contract.RevisionJobID)).To(ConsistOf(
			"pickup",            // [C5, C7, L27, L28] the deployer writes the status only at the end of a run
			"deployer",          // [C11] the deployer does not write its identity
			"next-job",          // [C3, L27] the deployer ends the second job without starting a run
			"spec-waits",        // [C3, C8] the deployer ignores the generation
			"invalid-code",      // [C10] the error has no code
			"error-length",      // [C10] the error is not truncated
			"recovers",          // [C7, C10] the deployer never removes an error
			"timeout",           // [C10] the deployer has no deadline
			"delete-phases",     // [C9] the deployer sets no phase during a deletion
			"deletion-waits",    // [C3, C13] the deployer does not wait for the job that deletes the item
			"without-uninstall", // [C12] the deployer always uninstalls
			"abort-deletion",    // [C4, C6, L30, L35] the deployer deletes even if an abort is requested
			"abort",             // [C4, C6, L31] the deployer ignores the abort
			"abort-late",        // [C6, L30, Lx7] the deployer ignores the abort
			"force-reconcile",   // [L32, Lx8] the deployer ignores the operation
			"ignore",            // [C8] the deployer does not support the annotation
			"test-reconcile",    // [C15] the deployer ignores the operation
			"changed",           // [C15, L27] the same reason as for next-job
			"other-target",      // [C2, L24, L25] the deployer accepts every Target
			"target-missing",    // [C2, Lx9] the deployer does not need a Target
			"one-write",         // [C10] the deployer writes the phase and jobIDFinished separately
			"says-who",          // [C5, C11] the same reasons as for pickup and deployer
		), "%v", report.Err())
		Expect(fmt.Sprint(report.Err())).To(ContainSubstring("phase \"Succeeded\" was written without jobIDFinished"))
	})
})
