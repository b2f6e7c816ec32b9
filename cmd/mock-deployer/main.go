// SPDX-License-Identifier: Apache-2.0

// Command mock-deployer runs the mock deployer of package deployers/mock.
package main

import (
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

func main() {
	deployermain.Run(deployermain.Program{
		Name: "mock-deployer", Short: "Sets the status of deploy items as specified in their configuration", Args: mock.Args(nil),
		ConfigKinds: []schema.GroupVersionKind{mockv1alpha1.SchemeGroupVersion.WithKind("Configuration")},
	})
}
