// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"os"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// An error about the configuration names the field and ends the job immediately.
func ExampleDecodeConfig() {
	type Config struct {
		Size int `json:"size"`
	}
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"disk.example.org/v1","kind":"DiskConfig","sise":3}`)}

	_, err := deployerlib.DecodeConfig[Config](di)
	fmt.Println(err)
	fmt.Println(contract.ErrorCodes(err))
	// Output:
	// Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config: unknown field "sise"
	// [ERR_CONFIGURATION_PROBLEM]
}

// SetProviderStatus adds the apiVersion and kind that the API server requires.
func ExampleSetProviderStatus() {
	kind := schema.GroupVersionKind{Group: "disk.example.org", Version: "v1", Kind: "DiskStatus"}
	di := &lsv1alpha1.DeployItem{}

	if err := deployerlib.SetProviderStatus(di, map[string]string{"diskID": "d1"}, kind); err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(di.Status.ProviderStatus.Raw))
	// Output: {"apiVersion":"disk.example.org/v1","diskID":"d1","kind":"DiskStatus"}
}

// slowDeployer is a deployer whose work takes long.
type slowDeployer struct {
	deployerlib.Base
	work <-chan error
}

// Reconcile stops when the library cancels the call.
func (s slowDeployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	select {
	case err := <-s.work:
		return err
	case <-ctx.Done():
		return context.Cause(ctx) // ErrAborted, ErrInterrupted, ErrDeadline or ErrShutdown
	}
}

// Delete has nothing to remove.
func (slowDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// addWithOptions adds a deployer and sets arguments for which most deployers use the defaults.
func addWithOptions(log logr.Logger, mgr manager.Manager, deployer deployerlib.Deployer) error {
	return deployerlib.Add(log, mgr, nil, deployerlib.DeployerArgs{
		Name:         "disk-deployer", // must stay the same from release to release
		Type:         "example.org/disk",
		Deployer:     deployer,
		ItemSelector: labels.SelectorFromSet(labels.Set{"shard": "a"}), // the items of this deployment
		TargetSelectors: []lsv1alpha1.TargetSelector{{
			Annotations: []lsv1alpha1.Requirement{{Key: "example.org/fence", Operator: "=", Values: []string{"internal"}}},
		}},
		LeaderElection: true, // the manager elects a leader
		Options:        controller.Options{MaxConcurrentReconciles: 20},
		PollInterval:   10 * time.Second,
		Backoff:        deployerlib.Backoff{Min: 2 * time.Second, Max: 10 * time.Minute},
	})
}

// newManagerOptions returns options that enable leader election and reduce the memory of the cache.
func newManagerOptions() ctrl.Options {
	return ctrl.Options{
		Cache:            cache.Options{ByObject: deployerlib.CacheByObject("example.org/disk")},
		LeaderElection:   true,
		LeaderElectionID: "disk-deployer",
	}
}

// Add checks its arguments immediately.
func ExampleAdd() {
	fmt.Println(newManagerOptions().LeaderElection)
	fmt.Println(addWithOptions(logr.Discard(), nil, slowDeployer{}))
	// Output:
	// true
	// add deployer "disk-deployer": the Landscaper manager is required
}

// oldDeployer was written for Landscaper's own library.
type oldDeployer struct{}

func (oldDeployer) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (oldDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (oldDeployer) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// logHook is a hook with the signature of Landscaper's own library, which has no logger.
func logHook(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
	_, err := fmt.Fprintln(os.Stderr, t, di.Name)
	return nil, err
}

var _ deployerlib.PortedDeployer = oldDeployer{}

// A deployer that was written for Landscaper's own library runs without changes.
func ExamplePort() {
	deployer := deployerlib.Port(oldDeployer{}, deployerlib.PortedHooks{
		extension.BeforeDeleteHook: {logHook},
	})
	fmt.Println(len(deployer.ExtensionHooks()))
	// Output: 1
}

// WaitFor returns an error whose text names what the action waits for.
func ExampleWaitFor() {
	fmt.Println(deployerlib.WaitFor("disk d1", 30*time.Second))
	// Output: waiting for disk d1
}
