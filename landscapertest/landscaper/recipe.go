// SPDX-License-Identifier: Apache-2.0

package landscaper

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/deployerkit/deployerkit/internal/gobuild"
	"github.com/deployerkit/deployerkit/internal/scratch"
)

// Version is the version of Landscaper that FindPrograms builds. This version follows the job-ID revision of the
// contract.
const Version = "v0.127.0"

// These are the programs that FindPrograms builds.
const (
	// Controller is Landscaper itself.
	Controller = "landscaper-controller"
	// MockDeployer, ManifestDeployer and HelmDeployer are Landscaper's own deployers.
	MockDeployer     = "mock-deployer-controller"
	ManifestDeployer = "manifest-deployer-controller"
	HelmDeployer     = "helm-deployer-controller"
)

// programsEnv is the name of an environment variable. If it is set, it contains a directory of prebuilt programs, which
// are used instead of the cache.
const programsEnv = "DEPLOYERKIT_LANDSCAPER"

var (
	//go:embed recipe/go.mod.tmpl
	recipeGoMod string
	//go:embed recipe/go.sum.tmpl
	recipeGoSum string
	//go:embed recipe/main.go.tmpl
	recipeMain string
)

// newRecipe returns the module from which the programs are built.
func newRecipe() gobuild.Recipe {
	return gobuild.Recipe{
		DisplayName: "Landscaper",
		Version:     Version,
		Notice:      "building Landscaper " + Version + " from Go modules, once: about 5 minutes on 2 cores",
		Module:      "deployerkit.local/landscaper",
		Files:       map[string]string{"go.mod": recipeGoMod, "go.sum": recipeGoSum, "main.go": recipeMain},
		Flags:       []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w"},
		Program:     "landscaper",
		Names:       []string{Controller, MockDeployer, ManifestDeployer, HelmDeployer},
		Space:       3 << 30,
	}
}

// FindPrograms returns a directory that contains Landscaper's programs. If the environment variable
// DEPLOYERKIT_LANDSCAPER is set, it returns that directory. Otherwise it uses a cache below os.UserCacheDir(). If the
// programs are not in the cache, it builds them from Go modules, which takes about five minutes on two cores. The
// writer `progress` receives a line for each long step; if it is nil, os.Stderr is used. FindPrograms is safe for
// concurrent use, even by several processes.
func FindPrograms(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := gobuild.CacheDir("landscaper", programsEnv)
	if err != nil {
		return "", fmt.Errorf("find Landscaper: %w", err)
	}
	f := &gobuild.Finder{
		Recipe:   newRecipe(),
		Required: newRecipe().Names,
		Env:      programsEnv,
		Cache:    cache,
		Report:   gobuild.NewReporter("landscaper", progress),
	}
	dir, err := f.Find(ctx)
	if err != nil {
		return "", fmt.Errorf("find Landscaper: %w", err)
	}
	return dir, nil
}

// FindSource returns the directory in the module cache that contains Landscaper's module, including its documentation
// and examples. It downloads the module if necessary.
func FindSource(ctx context.Context) (string, error) {
	temporary, err := scratch.New("deployerkit-landscaper-", nil)
	if err != nil {
		return "", fmt.Errorf("find Landscaper's source: %w", err)
	}
	defer func() { _ = temporary.Remove() }()
	dir := temporary.Path
	for name, content := range newRecipe().Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("find Landscaper's source: %w", err)
		}
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/gardener/landscaper")
	cmd.Dir, cmd.Stderr = dir, &stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr == nil && module.Error != "" {
		return "", fmt.Errorf("find Landscaper's source: %s", module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("find Landscaper's source: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return module.Dir, nil
}
