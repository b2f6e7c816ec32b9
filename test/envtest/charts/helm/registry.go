// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"helm.sh/helm/v4/pkg/registry"
)

// Push pushes the package of a chart to a registry, as `helm push` does. The manifest in the registry contains the
// given creation time.
func Push(file, ref string, created time.Time) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	client, err := newRegistryClient(ref)
	if err != nil {
		return err
	}
	if _, err := client.Push(content, ref, registry.PushOptCreationTime(created.UTC().Format(time.RFC3339))); err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	return nil
}

// PullChart downloads the package of a chart from a registry to a directory, as `helm pull` does, and returns the path
// of the file.
func PullChart(ref, dir string) (string, error) {
	client, err := newRegistryClient(ref)
	if err != nil {
		return "", err
	}
	result, err := client.Pull(ref)
	if err != nil {
		return "", fmt.Errorf("pull %s: %w", ref, err)
	}
	file := filepath.Join(dir, strings.ReplaceAll(path.Base(ref), ":", "-")+".tgz")
	return file, os.WriteFile(file, result.Chart.Data, 0o600)
}

// newRegistryClient returns a client for the registry of a reference. The client uses the credentials of Helm and
// Docker. It uses plain HTTP for a local registry, such as one on a loopback address.
func newRegistryClient(ref string) (*registry.Client, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	options := []registry.ClientOption{registry.ClientOptWriter(io.Discard)}
	if parsed.Context().Scheme() == "http" {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	return registry.NewClient(options...)
}
