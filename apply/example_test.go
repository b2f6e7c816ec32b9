// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// This function shows one reconcile of a deployer. The deployer calls it again after report.After(), or when a watch
// reports a change.
func ExampleEngine_Apply() {
	step := func(ctx context.Context, c client.Client, owner ownership.Owner, desired []apply.Desired, inventory apply.Inventory) (apply.Inventory, error) {
		engine := apply.New(c, c.RESTMapper(), apply.Options{})
		inventory, report, err := engine.Apply(ctx, owner, desired, inventory)
		switch {
		case err != nil:
			fmt.Println("failed:", err, apply.GetClass(err))
		case !report.IsDone():
			fmt.Println("waiting for", report.Reason(), report.RetryAfter())
		}
		return inventory, err // the caller stores the inventory even after an error
	}
	_ = step
}

// This function shows one run of a deployer that determines the order itself. It applies the database, then the web
// server that needs the database, and then deletes the objects that are no longer desired.
func ExampleSession() {
	run := func(ctx context.Context, engine *apply.Engine, owner ownership.Owner, inventory apply.Inventory, database, web apply.Desired) (apply.Inventory, error) {
		s := engine.NewSession(owner, inventory)
		for _, step := range []apply.Desired{database, web} {
			outcomes, err := s.Apply(ctx, step)
			if err != nil || outcomes[0].WaitMessage != "" {
				return s.Inventory(), err // the deployer calls this function again later
			}
		}
		for _, left := range s.ListUnclaimed() {
			if _, err := s.Delete(ctx, left.Ref()); err != nil {
				return s.Inventory(), err
			}
		}
		return s.Inventory(), nil // the caller stores the inventory even after an error
	}
	_ = run
}

// An error names the object and the field. Its class shows whether the configuration must change.
func ExampleError() {
	nameless := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	engine := apply.New(nil, nil, apply.Options{})
	_, _, err := engine.Apply(context.Background(), ownership.Owner{}, []apply.Desired{{Object: nameless}}, apply.Inventory{})
	fmt.Println(err)
	fmt.Println(apply.GetClass(err))
	// Output:
	// ConfigMap: .metadata.name: is required
	// permanent
}
