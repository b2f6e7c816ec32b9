// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
)

func TestCacheByObject(t *testing.T) {
	var transform func(any) (any, error)
	for _, by := range deployerlib.CacheByObject(testType, "example.com/second") {
		transform = by.Transform
	}
	full := func(typ lsv1alpha1.DeployItemType) *lsv1alpha1.DeployItem {
		di := newItem(withRunningJob("1", 0), withTarget)
		di.Spec.Type, di.ResourceVersion = typ, "7"
		di.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		di.Labels = map[string]string{"a": "b"}
		di.Annotations = map[string]string{"c": "d", lsv1alpha1.DeployerTypeAnnotation: string(typ)}
		return di
	}
	for _, typ := range []lsv1alpha1.DeployItemType{testType, "example.com/second", "example.com/other"} {
		once, err := transform(full(typ))
		if err != nil {
			t.Fatal(err)
		}
		di, _ := once.(*lsv1alpha1.DeployItem)
		copied := di.DeepCopy()
		twice, err := transform(di)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(copied), twice); diff != "" {
			t.Errorf("%s: not idempotent:\n%s", typ, diff)
		}
		if di.ResourceVersion != "7" || di.Name == "" || di.UID == "" || di.Spec.Type != typ || di.ManagedFields != nil {
			t.Errorf("%s: kept %+v", typ, di.ObjectMeta)
		}
		mine := typ != "example.com/other"
		if diff := cmp.Diff([]map[string]string{full(typ).Labels, full(typ).Annotations}, []map[string]string{di.Labels, di.Annotations}); mine && diff != "" {
			t.Errorf("%s: labels and annotations (-want +got):\n%s", typ, diff)
		}
		if has := di.Spec.Configuration != nil && di.Status.JobID != "" && di.Labels != nil; has != mine {
			t.Errorf("%s: has its content: %t, want %t", typ, has, mine)
		}
	}
	for _, other := range []any{nil, "text", client.Object(&corev1.Secret{})} {
		if got, err := transform(other); err != nil || got != other {
			t.Errorf("%v became %v, %v", other, got, err)
		}
	}
}
