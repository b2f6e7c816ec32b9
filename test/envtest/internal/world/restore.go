// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateFromBackup creates a ConfigMap with the labels, annotations and data of another one, under a field manager, as
// a restore of the cluster from a backup does.
func (w *World) CreateFromBackup(ctx context.Context, backup *corev1.ConfigMap, manager string) {
	w.t.Helper()
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	again.SetNamespace(backup.Namespace)
	again.SetName(backup.Name)
	again.SetLabels(backup.Labels)
	again.SetAnnotations(backup.Annotations)
	w.must(unstructured.SetNestedStringMap(again.Object, backup.Data, "data"))
	w.must(w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(again), client.FieldOwner(manager)))
}
