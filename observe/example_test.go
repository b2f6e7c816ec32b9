// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

const item = types.UID("4f1e")

// newApplied returns the answer to the item's last write. The item owns data.color and data.size after this write.
func newApplied() *metav1.PartialObjectMetadata {
	return settings(`{"f:data":{"f:color":{},"f:size":{}}}`)
}

// settings returns a ConfigMap. The item owns the given fields of this ConfigMap.
func settings(fields string) *metav1.PartialObjectMetadata {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings", UID: "u1", ResourceVersion: "10",
			Labels: map[string]string{ownership.LabelItem: string(item)},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: ownership.FormatFieldManager(item), Operation: metav1.ManagedFieldsOperationApply,
				APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			}},
		},
	}
}

// newEdited returns the stored object after data.color was changed with kubectl edit.
func newEdited() *metav1.PartialObjectMetadata {
	obj := settings(`{"f:data":{"f:size":{}}}`)
	at := metav1.NewTime(time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC))
	obj.ManagedFields = append(obj.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:color":{}}}`),
	})
	return obj
}

// client returns a fake client. A deployer uses metadata.NewForConfig(config) instead.
func client(objects ...runtime.Object) metadata.Interface {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

// A Watcher that has just started reports a change from before its start, because the inventory contains the key of the
// object.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	remembered := observe.BaselineObject{
		Object:      observe.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "settings"}},
		UID:         "u1",
		Fingerprint: ownership.ComputeFingerprint(newApplied(), ownership.FormatFieldManager(item)),
	}

	w := observe.New(client(newEdited()), observe.Options{})
	w.Start(ctx)
	w.OnDrift(func(d observe.Drift) { fmt.Println("correct item", d.Item, "-", d) })

	coverage, err := w.Watch(ctx, configMaps, "shop")
	if err != nil {
		panic(err)
	}
	fmt.Println("watched:", coverage.Scope)
	w.SetBaseline(item, []observe.BaselineObject{remembered})

	cancel()
	w.Wait()
	// Output:
	// watched: Cluster
	// correct item 4f1e - configmaps shop/settings: changed by kubectl-edit (data.color)
}

func ExampleFightDetector() {
	fights := observe.NewFightDetector(observe.FightOptions{})
	drift := observe.Drift{
		Reason:  observe.DriftReasonChanged,
		Changes: []observe.Change{{Manager: "autoscaler", Fields: []string{"spec.replicas"}}},
	}
	for range 5 {
		correction := fights.AddCorrection(drift)
		fmt.Printf("%v %q %q\n", correction.Delay, correction.Manager, correction.Field)
	}
	// Output:
	// 0s "" ""
	// 0s "" ""
	// 10s "autoscaler" "spec.replicas"
	// 20s "autoscaler" "spec.replicas"
	// 40s "autoscaler" "spec.replicas"
}
