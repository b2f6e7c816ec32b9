// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployers/manifest"
)

func ExampleDecode() {
	di := &lsv1alpha1.DeployItem{}
	di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha1",
		"kind": "ProviderConfiguration",
		"manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "logging"}}]
	}`)}
	config, err := manifest.Decode(di, manifest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Strategy, config.Manifests[0].Policy)
	for _, m := range config.Manifests {
		objects, err := manifest.Expand(m.Manifest)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, obj := range objects {
			fmt.Println(obj.GetKind(), obj.GetName())
		}
	}
	// Output:
	// apply manage
	// Namespace logging
}
