// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"

	"github.com/deployerkit/deployerkit/controlplane"
)

// Start starts etcd and an API server, and installs Landscaper's custom resource definitions.
func ExampleStart() {
	run := func(ctx context.Context) error {
		cp, err := controlplane.Start(ctx, controlplane.Options{
			ControllerManager: true, // for garbage collection, Deployments and Jobs
		})
		if err != nil {
			return err
		}
		fmt.Println(cp.Config.Host) // for clients and managers
		return cp.Stop()
	}
	_ = run
}

// CRDs returns Landscaper's custom resource definitions. With Options.CRDs, other definitions can be installed in
// addition to them or instead of them.
func ExampleCRDs() {
	for _, crd := range controlplane.CRDs() {
		if crd.Spec.Names.Kind == "DeployItem" {
			fmt.Println(crd.Name, crd.Spec.Names.ShortNames)
		}
	}
	// Output: deployitems.landscaper.gardener.cloud [di]
}
