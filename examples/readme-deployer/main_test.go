// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
)

func TestPasswords(t *testing.T) {
	deployer := &passwords{client: newClient()}
	di := item(`{"length": 12}`)
	if err := deployer.Reconcile(t.Context(), nil, di, nil); err != nil {
		t.Fatal(err)
	}
	first := getPassword(t, deployer, di)
	if len(first) != 12 {
		t.Errorf("password %q, want 12 characters", first)
	}
	if err := deployer.Reconcile(t.Context(), nil, di, nil); err != nil {
		t.Fatal(err)
	}
	if second := getPassword(t, deployer, di); second != first {
		t.Errorf("the second run changed the password to %q, want %q", second, first)
	}
	if err := deployer.Delete(t.Context(), nil, di, nil); err != nil {
		t.Fatal(err)
	}
	err := deployer.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "mine-export"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get the Secret after Delete: %v, want not found", err)
	}
}

func TestPasswordsRejectsInvalidConfig(t *testing.T) {
	for name, tc := range map[string]struct{ config, path string }{
		"too long":         {`{"length": 27}`, "spec.config.length"},
		"missing":          {`{}`, "spec.config.length"},
		"an unknown field": {`{"size": 12}`, `"size"`},
	} {
		t.Run(name, func(t *testing.T) {
			deployer := &passwords{client: newClient()}
			err := deployer.Reconcile(t.Context(), nil, item(tc.config), nil)
			if err == nil || !strings.Contains(err.Error(), tc.path) {
				t.Fatalf("error %v, want %s in it", err, tc.path)
			}
			if !contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
				t.Errorf("error %v does not end the job", err)
			}
		})
	}
}

// newClient returns a fake client. Like an API server, it sets a UID when it creates an object.
func newClient() client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetUID("made")
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
}

func item(config string) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine", UID: "u"},
		Spec:       lsv1alpha1.DeployItemSpec{Type: "example.org/password", Configuration: &runtime.RawExtension{Raw: []byte(config)}},
	}
}

func getPassword(t *testing.T, p *passwords, di *lsv1alpha1.DeployItem) string {
	t.Helper()
	secret := &corev1.Secret{}
	ref := client.ObjectKey{Namespace: di.Status.ExportReference.Namespace, Name: di.Status.ExportReference.Name}
	if err := p.client.Get(t.Context(), ref, secret); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &values); err != nil {
		t.Fatal(err)
	}
	return values["password"]
}
