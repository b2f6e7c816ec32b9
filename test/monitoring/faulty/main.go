// SPDX-License-Identifier: Apache-2.0

// Command faulty is a deployer with the defects for which there are alerts: it panics, or ignores the cancellation of
// its calls.
package main

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

type faulty struct{ deployerlib.Base }

// config is the content of spec.config of an item.
type config struct {
	metav1.TypeMeta `json:",inline"`

	Defect string `json:"defect"`
}

func (faulty) Reconcile(_ context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	cfg, err := deployerlib.DecodeConfig[config](di)
	if err != nil {
		return err
	}
	if cfg.Defect == "hang" {
		select {}
	}
	panic("a defect")
}

func (faulty) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func main() {
	deployermain.Run(deployermain.Program{
		Name: "faulty", Short: "Panics or hangs", Args: deployerlib.DeployerArgs{Name: "faulty", Type: "example.org/faulty", Deployer: faulty{}},
	})
}
