// SPDX-License-Identifier: Apache-2.0

package declarativetest_test

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
)

// This example shows what a handler would do, without a cluster. The resulting objects are the input of the next run.
func ExampleRun() {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		return declarative.NewBuilder(nil).Add(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": req.Name("settings")},
			"data": map[string]any{"level": "info"},
		}).Build()
	})
	options := declarative.Options{Children: []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}}}
	item := &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", Generation: 1},
		Spec:       lsv1alpha1.DeployItemSpec{Configuration: &runtime.RawExtension{Raw: []byte(`{}`)}},
	}

	plan, err := declarativetest.Run(context.Background(), handler, options, item)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.ListSteps())
	plan, err = declarativetest.Run(context.Background(), handler, options, item, plan.Observed...)
	fmt.Println(len(plan.ListSteps()), err)
	// Output:
	// [create ConfigMap default/web-settings]
	// 0 <nil>
}
