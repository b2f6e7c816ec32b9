// SPDX-License-Identifier: Apache-2.0

package mock_test

import (
	"fmt"

	"github.com/deployerkit/deployerkit/deployers/mock"
)

// Args returns the arguments for deployerlib.Add or for a program.
func ExampleArgs() {
	args := mock.Args(nil)
	fmt.Println(args.Name, args.Type)
	// Output:
	// mock.deployer.landscaper.gardener.cloud landscaper.gardener.cloud/mock
}
