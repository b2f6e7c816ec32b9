// SPDX-License-Identifier: Apache-2.0

// Command assets finds or builds the binaries of the test control plane. With the argument `landscaper`, it finds or
// builds the binaries of Landscaper. It prints the directory that contains the binaries:
//
//	export KUBEBUILDER_ASSETS=$(go -C hack run ./assets)
//	export DEPLOYERKIT_LANDSCAPER=$(go -C hack run ./assets landscaper)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := find(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
	fmt.Println(dir)
}

func find(ctx context.Context, args []string) (string, error) {
	if len(args) == 1 && args[0] == "landscaper" {
		return landscaper.FindPrograms(ctx, nil)
	}
	return controlplane.FindAssets(ctx, controlplane.AssetsOptions{ControllerManager: true})
}
