// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

func TestManagedOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		entry  apply.Entry
		want   managedresource.ManagedResourceStatusList
	}{
		"ForeignImmutable [H-18]": {
			reason: "Landscaper's deployer would delete an object that was never ours",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a", Policy: apply.Immutable},
			want:   managedresource.ManagedResourceStatusList{},
		},
		"ForeignFallback": {
			reason: "an object that the policy leaves alone is not managed",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a", Policy: apply.Fallback},
			want:   managedresource.ManagedResourceStatusList{},
		},
		"NotYetWritten [D11]": {
			reason: "it may exist",
			entry:  apply.Entry{Kind: "ConfigMap", Name: "a"},
			want:   managedresource.ManagedResourceStatusList{{Policy: "manage", Resource: corev1.ObjectReference{Kind: "ConfigMap", Name: "a"}}},
		},
		"BeforeDelete": {
			reason: "what is to be sent before the deletion goes with the object",
			entry: apply.Entry{
				Kind: "ConfigMap", Name: "a", UID: "1", Policy: apply.Immutable,
				AnnotateBeforeDelete: map[string]string{"a": "b"}, PatchBeforeDelete: map[string]any{"data": map[string]any{"a": "b"}},
			},
			want: managedresource.ManagedResourceStatusList{{
				Policy: "immutable", Resource: corev1.ObjectReference{Kind: "ConfigMap", Name: "a", UID: "1"},
				AnnotateBeforeDelete: map[string]string{"a": "b"}, PatchBeforeDelete: &runtime.RawExtension{Raw: []byte(`{"data":{"a":"b"}}`)},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := managedOf(apply.Inventory{Entries: []apply.Entry{tc.entry}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
