// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
)

var startTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newDeployer returns a deployer that uses a fake cluster with the given Secrets.
func newDeployer(secrets ...client.Object) *deployer {
	d, _ := New().(*deployer)
	d.clock = clocktesting.NewFakePassiveClock(startTime)
	d.secrets = fake.NewClientBuilder().WithObjects(secrets...).Build()
	return d
}

// getExport returns the export Secret of the item that newItem returns, or nil if the Secret does not exist.
func getExport(t *testing.T, d *deployer) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := d.secrets.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "item-export"}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		fields         string
		phase          lsv1alpha1.DeployItemPhase
		providerStatus string
		export         string
	}{
		"succeeds with an empty configuration [D1]": {phase: "Succeeded"},
		"sets the phase [D1]":                       {fields: `"phase":"Failed"`, phase: "Failed"},
		"copies the provider status [D2]": {
			fields: `"providerStatus":{"apiVersion":"v1","kind":"S","n":1}`, phase: "Succeeded",
			providerStatus: `{"apiVersion":"v1","kind":"S","n":1}`,
		},
		"writes the export as it is [D2]": {
			fields: `"export":{"b": 1,  "a":"x"},"phase":"Progressing"`, phase: "Progressing",
			export: `{"b": 1,  "a":"x"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, di := newDeployer(), newItem(tc.fields)
			if err := d.Reconcile(t.Context(), nil, di, nil); err != nil {
				t.Fatal(err)
			}
			if di.Status.Phase != tc.phase {
				t.Errorf("phase: want %q, got %q", tc.phase, di.Status.Phase)
			}
			var providerStatus, exported string
			if di.Status.ProviderStatus != nil {
				providerStatus = string(di.Status.ProviderStatus.Raw)
			}
			if secret := getExport(t, d); secret != nil {
				exported = string(secret.Data["config"])
				if want := (&lsv1alpha1.ObjectReference{Namespace: "ns", Name: "item-export"}); !cmp.Equal(want, di.Status.ExportReference) {
					t.Errorf("exportRef: want %v, got %v", want, di.Status.ExportReference)
				}
			}
			if diff := cmp.Diff([]string{tc.providerStatus, tc.export}, []string{providerStatus, exported}); diff != "" {
				t.Errorf("provider status and export: -want, +got:\n%s", diff)
			}
			want := []lsv1alpha1.Condition{{
				Type: ValidationCondition, Status: lsv1alpha1.ConditionTrue, Reason: reasonValid,
				Message: "the provider configuration is valid", LastTransitionTime: metav1.NewTime(startTime), LastUpdateTime: metav1.NewTime(startTime),
			}}
			if diff := cmp.Diff(want, di.Status.Conditions); diff != "" {
				t.Errorf("conditions: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestReconcileRejectsInvalidConfiguration(t *testing.T) {
	d, di := newDeployer(), newItem(`"export":{"a":1},"phase":"Done"`)
	err := d.Reconcile(t.Context(), nil, di, nil)
	if !contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
		t.Errorf("Reconcile [D4]: want an unrecoverable error, got %v", err)
	}
	cond := contract.GetCondition(di.Status.Conditions, ValidationCondition)
	if cond == nil || cond.Status != lsv1alpha1.ConditionFalse || !strings.Contains(cond.Message, "spec.config.phase") {
		t.Errorf("condition [D4]: want False with the path, got %+v", cond)
	}
	if secret := getExport(t, d); secret != nil {
		t.Errorf("nothing is written for a wrong configuration, got %v", secret)
	}
}

func TestReconcileReturnsWriteErrors(t *testing.T) {
	errBoom := errors.New("boom")
	d := newDeployer()
	d.secrets = interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errBoom },
	})
	di := newItem(`"export":1`)
	if err := d.Reconcile(t.Context(), nil, di, nil); !errors.Is(err, errBoom) || di.Status.ExportReference != nil {
		t.Errorf("Reconcile: want %v and no reference, got %v and %v", errBoom, err, di.Status.ExportReference)
	}
}

func TestDelete(t *testing.T) {
	owned := []metav1.OwnerReference{{UID: "uid"}}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		exists bool
		left   bool
	}{
		"removes the export [D3]":              {owners: owned, exists: true},
		"accepts a missing export [D3]":        {},
		"keeps a Secret without an owner [D3]": {exists: true, left: true},
		"keeps a Secret of another item [D3]":  {owners: []metav1.OwnerReference{{UID: "other"}}, exists: true, left: true},
		"works with an invalid configuration":  {owners: owned, exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeployer()
			if tc.exists {
				d = newDeployer(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item-export", UID: "s", OwnerReferences: tc.owners}})
			}
			di := newItem(`"phase":"nonsense"`)
			di.Status.ExportReference = &lsv1alpha1.ObjectReference{Namespace: "ns", Name: "item-export"}
			if err := d.Delete(t.Context(), nil, di, nil); err != nil {
				t.Fatal(err)
			}
			if left := getExport(t, d) != nil; left != tc.left {
				t.Errorf("Secret left: want %t, got %t", tc.left, left)
			}
		})
	}
}

func TestAbortKeepsTheExport(t *testing.T) {
	d := newDeployer(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item-export", UID: "s"}})
	if err := d.Abort(t.Context(), nil, newItem(""), nil); err != nil {
		t.Errorf("Abort [D6]: %v", err)
	}
	if getExport(t, d) == nil {
		t.Error("Abort [D6]: the export is gone")
	}
}

func TestExtensionHooks(t *testing.T) {
	called := 0
	more := extension.ReconcileExtensionHookSetup{
		Hook: func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
			called++
			return nil, nil
		},
		HookTypes: []extension.HookType{extension.ShouldReconcileHook, extension.EndHook},
	}
	hooks := New(more).ExtensionHooks()
	if err := hooks.Validate(); err != nil {
		t.Fatal(err)
	}
	di := newItem(`"continuousReconcile":{"every":"1m"}`)
	di.Status.LastReconcileTime = &metav1.Time{Time: startTime}
	res, err := hooks.ExecuteHooks(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook)
	if err != nil || res == nil || res.AbortReconcile {
		t.Errorf("a schedule that passed long ago forces a run, got %+v, %v", res, err)
	}
	if called != 1 {
		t.Errorf("further hook: want 1 call, got %d", called)
	}
}

func TestArgs(t *testing.T) {
	selectors := []lsv1alpha1.TargetSelector{{Labels: []lsv1alpha1.Requirement{{Key: "zone", Operator: selection.Exists}}}}
	args := Args(&mockv1alpha1.Configuration{Identity: "me", TargetSelector: selectors})
	args.Default()
	if err := args.Validate(); err != nil {
		t.Fatal(err)
	}
	got := []any{args.Name, args.Type, args.Identity, args.TargetSelectors}
	want := []any{Name, Type, "me", selectors}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Args [D5]: -want, +got:\n%s", diff)
	}
	if args := Args(nil); args.Identity != "" || args.TargetSelectors != nil {
		t.Errorf("Args(nil): want neither identity nor selectors, got %+v", args)
	}
}
