// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// These are the names of environment variables.
const (
	// assetsEnv is the environment variable that contains a directory with the binaries. This directory takes
	// precedence over all other places.
	assetsEnv = "KUBEBUILDER_ASSETS"
	// indexEnv is the environment variable that contains the URL of the list of envtest releases.
	indexEnv = "DEPLOYERKIT_ENVTEST_INDEX"
)

// installedDir is the directory that kubebuilder's instructions use for the binaries.
const installedDir = "/usr/local/kubebuilder/bin"

// AssetsOptions configures FindAssets.
type AssetsOptions struct {
	// ControllerManager specifies whether kube-controller-manager is required in addition to etcd and kube-apiserver.
	ControllerManager bool
	// Progress receives a line for each long step, such as a download, a build, or waiting for another process. The
	// default is os.Stderr.
	Progress io.Writer
}

// FindAssets returns a directory with the binaries of the control plane. It looks for the binaries in the places that
// the package documentation lists. If none of these places contains the binaries, FindAssets builds them. The first
// build takes up to seven minutes, so call FindAssets once before tests that have a time limit. FindAssets is safe for
// concurrent use, even by several processes. Each error is a single line that names the problem and the remedy. Typical
// problems are a missing go command, a full disk and a missing network.
func FindAssets(ctx context.Context, o AssetsOptions) (string, error) {
	f, err := newFinder(o)
	if err != nil {
		return "", fmt.Errorf("find control plane binaries: %w", err)
	}
	dir, err := f.Find(ctx)
	if err != nil {
		return "", fmt.Errorf("find control plane binaries: %w", err)
	}
	return dir, nil
}

func newFinder(o AssetsOptions) (*gobuild.Finder, error) {
	cache, err := gobuild.CacheDir("envtest", assetsEnv)
	if err != nil {
		return nil, err
	}
	f := &gobuild.Finder{
		Recipe:      newSmallRecipe(),
		Required:    []string{etcdName, apiServerName},
		Env:         assetsEnv,
		Cache:       cache,
		Places:      []string{newFullRecipe().Dir(cache)},
		Report:      gobuild.NewReporter("envtest", o.Progress),
		DownloadKey: downloadKey(),
	}
	if os.Getenv(indexEnv) == "" {
		f.Places = append(f.Places, installedDir)
	}
	if o.ControllerManager {
		f.Recipe = newFullRecipe()
		f.Required = append(f.Required, controllerManagerName)
	} else {
		f.Download = newDownloader(f.Report).download
	}
	return f, nil
}
