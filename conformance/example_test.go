// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"os/exec"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// newValidConfig returns the configuration of a deploy item that succeeds.
func newValidConfig(types.NamespacedName) any {
	return `{"apiVersion":"mock.deployer.landscaper.gardener.cloud/v1alpha1","kind":"ProviderConfiguration"}`
}

// A deployer that uses this library can be checked in the process of the test.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		conformance.Run(t, conformance.Subject{
			Name:  "mock",
			Type:  mock.Type,
			Start: conformance.NewStartFunc(func() deployerlib.DeployerArgs { return mock.Args(nil) }),
			Valid: newValidConfig,
		})
	}
	_ = testConformance
}

// A deployer in any language can be checked as a command.
func ExampleSubject() {
	subject := conformance.Subject{
		Name: "mock",
		Type: mock.Type,
		Command: func(kubeconfig string) *exec.Cmd {
			return exec.Command("/bin/mock-deployer", "--kubeconfig="+kubeconfig)
		},
		Valid: newValidConfig,
	}
	fmt.Println(subject.Validate())
	subject.Type = ""
	fmt.Println(subject.Validate())
	// Output:
	// <nil>
	// subject "mock": type: required
}
