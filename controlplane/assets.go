// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// The environment variables that say where the binaries are: a directory that wins over every other place, and the
// list of the releases that can be downloaded.
const (
	assetsEnv = "KUBEBUILDER_ASSETS"
	indexEnv  = "DEPLOYERKIT_ENVTEST_INDEX"
)

// installedDir is where kubebuilder's instructions install the binaries.
const installedDir = "/usr/local/kubebuilder/bin"

// AssetsOptions select what Assets looks for.
type AssetsOptions struct {
	// ControllerManager asks for kube-controller-manager beside etcd and kube-apiserver.
	ControllerManager bool
	// Progress receives one line per step that takes long: download, build, waiting for another
	// process. The default is os.Stderr.
	Progress io.Writer
}

// Assets returns a directory with the binaries of the control plane. It makes them if they are in none of
// the places that the package documentation lists. The first build takes up to seven minutes: call it
// once before tests that have a time limit of their own. It is safe for concurrent use, across processes
// too. Errors are one line and say what to do: no go command, no disk space, no network.
func Assets(ctx context.Context, o AssetsOptions) (string, error) {
	f, err := newFinder(o)
	if err != nil {
		return "", fmt.Errorf("find control plane: %w", err)
	}
	dir, err := f.Find(ctx)
	if err != nil {
		return "", fmt.Errorf("find control plane: %w", err)
	}
	return dir, nil
}

func newFinder(o AssetsOptions) (*gobuild.Finder, error) {
	cache, err := gobuild.CacheDir("envtest", assetsEnv)
	if err != nil {
		return nil, err
	}
	f := &gobuild.Finder{
		Recipe:      smallRecipe(),
		Need:        []string{etcdName, apiServerName},
		Env:         assetsEnv,
		Cache:       cache,
		Places:      []string{fullRecipe().Dir(cache)},
		Report:      gobuild.NewReporter("envtest", o.Progress),
		DownloadKey: downloadKey(),
	}
	if os.Getenv(indexEnv) == "" {
		f.Places = append(f.Places, installedDir)
	}
	if o.ControllerManager {
		f.Recipe = fullRecipe()
		f.Need = append(f.Need, controllerManagerName)
	} else {
		f.Download = newDownloader(f.Report).download
	}
	return f, nil
}
