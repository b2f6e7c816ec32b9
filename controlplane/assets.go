// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// The names of environment variables.
const (
	// assetsEnv has a directory of binaries. It takes precedence over every other place.
	assetsEnv = "KUBEBUILDER_ASSETS"
	// indexEnv has the address of the list of the envtest releases.
	indexEnv = "DEPLOYERKIT_ENVTEST_INDEX"
)

// installedDir is where kubebuilder's instructions install the binaries.
const installedDir = "/usr/local/kubebuilder/bin"

// AssetsOptions configures Assets.
type AssetsOptions struct {
	// ControllerManager requires kube-controller-manager in addition to etcd and kube-apiserver.
	ControllerManager bool
	// Progress receives one line per long step: download, build, waiting for another process. The default is os.Stderr.
	Progress io.Writer
}

// Assets returns a directory with the binaries of the control plane. It builds them if they are in none of the places
// that the package documentation lists. The first build takes up to seven minutes, so call Assets once before tests
// that have a time limit. It is safe for concurrent use, even by several processes. Errors are one line that says what
// to do, for example about a missing go command, a full disk or a missing network.
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
