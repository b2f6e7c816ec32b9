// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestExportErrorsAreRedacted checks that errors that quote an export Secret are redacted.
func TestExportErrorsAreRedacted(t *testing.T) {
	di := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "item", UID: "uid"}}
	quoting := func(data []byte) error {
		return fmt.Errorf("denied: {config: %s} or %s", data, base64.StdEncoding.EncodeToString(data))
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			return quoting(obj.(*corev1.Secret).Data[lsv1alpha1.DataObjectSecretDataKey])
		},
	}).Build()
	err := WriteExport(t.Context(), c, di, map[string]string{"password": "k4n4ry-secret"})
	if err == nil || !strings.HasSuffix(err.Error(), `denied: {config: {"password":"***"}} or eyJwYXNzd29yZCI6I***ifQ==`) {
		t.Errorf("error = %v, want an error that ends with %q", err, `denied: {config: {"password":"***"}} or eyJwYXNzd29yZCI6I***ifQ==`)
	}
}
