// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/managed"
)

// greeter applies a ConfigMap to the target of each of its items.
type greeter struct {
	deployerlib.Base
	manager *managed.ResourceManager
}

func (g *greeter) UseRuntime(rt deployerlib.Runtime) error { return g.manager.UseRuntime(rt) }

func (g *greeter) ExtensionHooks() extension.ReconcileExtensionHooks { return g.manager.NewHooks(nil) }

// status is the provider status.
type status struct {
	Inventory apply.Inventory `json:"inventory"`
}

var statusKind = schema.GroupVersionKind{Group: "greeter.example.com", Version: "v1", Kind: "Status"}

// begin reads the provider status.
func (g *greeter) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*managed.Run, error) {
	last := status{}
	if stored := di.Status.ProviderStatus; stored != nil {
		if err := json.Unmarshal(stored.Raw, &last); err != nil {
			return nil, err
		}
	}
	return g.manager.Begin(ctx, di, last.Inventory, func(inventory apply.Inventory) error {
		return deployerlib.SetProviderStatus(di, status{Inventory: inventory}, statusKind)
	})
}

func (g *greeter) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := g.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "default", "name": di.Name}, "data": map[string]any{"greeting": "hello"},
	}}
	if _, err := r.Apply(ctx, []apply.Desired{{Object: greeting}}, apply.Options{}); err != nil {
		return err
	}
	if err := r.CheckAllReady(ctx, 0); err != nil {
		return err
	}
	r.Finish()
	return nil
}

func (g *greeter) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	g.manager.ForceResync(di)
	return g.Reconcile(ctx, lsCtx, di, target)
}

func (g *greeter) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := g.begin(ctx, di)
	if err != nil {
		return err
	}
	if err := r.Connect(ctx, target); err != nil {
		return err
	}
	return r.Delete(ctx, apply.Options{}, nil, 0)
}

func (g *greeter) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := g.begin(ctx, di)
	if err != nil {
		return err
	}
	return r.StartWatches(ctx, target)
}

// This is a complete deployer that corrects changes by other clients.
func Example() {
	g := &greeter{manager: managed.New(managed.Options{Name: "greeter"})}
	args := deployerlib.DeployerArgs{Name: "greeter.example.com", Type: "example.com/greeting", Deployer: g}
	// deployerlib.Add(log, mgr, nil, args) runs it.
	_, resumes := args.Deployer.(deployerlib.Resumer)
	fmt.Println("resumes:", resumes, "- hooks:", len(args.Deployer.ExtensionHooks()[extension.ShouldReconcileHook]))
	// Output: resumes: true - hooks: 1
}
