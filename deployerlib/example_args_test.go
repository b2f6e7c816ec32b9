// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Only the type of the deploy items and the deployer are required. All other arguments have defaults.
func ExampleDeployerArgs() {
	add := func(mgr ctrl.Manager, deployer deployerlib.Deployer) error {
		return deployerlib.Add(mgr.GetLogger(), mgr, nil, deployerlib.DeployerArgs{
			Name:     "disk-deployer",
			Type:     "example.org/disk",
			Deployer: deployer,
		})
	}
	_ = add // call it before mgr.Start
}

// An error of NewConfigError names the faulty field. Landscaper does not retry the job.
func ExampleConfigError() {
	err := deployerlib.NewConfigError("spec.config.size", "must be positive, is %d", -1)
	fmt.Println(err)
	fmt.Println(contract.HasUnrecoverableCode(contract.ErrorCodes(err)))
	// Output:
	// Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config.size: must be positive, is -1
	// true
}

// DecodeConfigAs accepts only configurations of the given kinds.
func ExampleDecodeConfigAs() {
	type Config struct {
		Size int `json:"size"`
	}
	kind := schema.GroupVersionKind{Group: "disk.example.org", Version: "v1", Kind: "DiskConfig"}
	di := &lsv1alpha1.DeployItem{}
	for _, raw := range []string{
		`{"apiVersion":"disk.example.org/v1","kind":"DiskConfig","size":3}`,
		`{"apiVersion":"disk.example.org/v2","kind":"DiskConfig","size":3}`,
	} {
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(raw)}
		config, err := deployerlib.DecodeConfigAs[Config](di, kind)
		fmt.Println(config, err)
	}
	// Output:
	// &{3} <nil>
	// <nil> Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config: is disk.example.org/v2 "DiskConfig", want disk.example.org/v1 "DiskConfig"
}

// AsWait reports whether an error only means that the work is not finished.
func ExampleAsWait() {
	for _, err := range []error{deployerlib.WaitFor("disk d1", 0), errors.New("disk d1 is broken")} {
		reason, _, waits := deployerlib.AsWait(err)
		fmt.Printf("%t %q\n", waits, reason)
	}
	// Output:
	// true "disk d1"
	// false ""
}

// WriteExport writes the values that other Installations can import. Call it in Reconcile, and DeleteExport in Delete.
func ExampleWriteExport() {
	export := func(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem) error {
		return deployerlib.WriteExport(ctx, c, di, map[string]any{"host": "web.example.org", "port": 443})
	}
	_ = export
}

// DeleteExport deletes the Secret that WriteExport created. It does nothing if there is no such Secret.
func ExampleDeleteExport() {
	remove := func(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem) error {
		if err := deployerlib.DeleteExport(ctx, c, di); err != nil {
			return err
		}
		return c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: di.Namespace, Name: di.Name}})
	}
	_ = remove
}
