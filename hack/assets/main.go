// SPDX-License-Identifier: Apache-2.0

// Command assets finds or makes the binaries of the test control plane and prints their directory:
//
//	export KUBEBUILDER_ASSETS=$(go run ./hack/assets)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deployerkit/deployerkit/test/envtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := envtest.Assets(ctx, envtest.AssetsOptions{ControllerManager: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1) //nolint:gocritic // the deferred stop has nothing left to do
	}
	fmt.Println(dir)
}
