// SPDX-License-Identifier: Apache-2.0

// Command dryrun makes a release without publishing anything:
//
//	go run ./dryrun v0.1.0 dist [VARIABLE=value…]
//
// It starts a registry on loopback that contains an empty base image, generates a key, and runs `make publish` with
// them. Further arguments are passed to make. Then it lists what a release would publish.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/cosign"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
	"github.com/deployerkit/deployerkit/test/envtest/charts/localregistry"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "dryrun: want a version and a directory")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "dryrun:", err)
		os.Exit(1)
	}
}

// run makes the release of a version, and writes its files into dir. Files of earlier runs are deleted.
func run(ctx context.Context, version, dir string, variables []string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // not secret
		return err
	}
	address, stop, err := localregistry.Serve()
	if err != nil {
		return err
	}
	defer stop()
	keys, err := os.MkdirTemp("", "dryrun-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(keys) //nolint:errcheck // a temporary directory
	password := rand.Text()
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte(password), nil })
	if err != nil {
		return fmt.Errorf("generate a key: %w", err)
	}
	key := filepath.Join(keys, "cosign.key")
	if err := os.WriteFile(key, pair.PrivateBytes, 0o600); err != nil {
		return err
	}
	args := append([]string{
		"publish", "VERSION=" + version, "DIR=" + dir, "REGISTRY=" + address + "/release", "BASE=" + address + "/base:1", "KEY=" + key,
		"KOFLAGS=--insecure-registry",
	}, variables...)
	cmd := exec.CommandContext(ctx, "make", args...) //nolint:gosec // the arguments of the user
	cmd.Dir, cmd.Stdout, cmd.Stderr = helm.Root(), os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD="+password)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make publish: %w", err)
	}
	return list(ctx, os.Stdout, dir, address)
}

// list writes a table of the files of the release and of the artifacts in the registry.
func list(ctx context.Context, out io.Writer, dir, address string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nFILE IN %s\tSIZE\n", dir)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		fmt.Fprintf(table, "%s\t%d KB\n", relative, (info.Size()+1023)/1024)
		return err
	})
	if err != nil {
		return err
	}
	host, err := name.NewRegistry(address)
	if err != nil {
		return err
	}
	repositories, err := remote.Catalog(ctx, host)
	if err != nil {
		return err
	}
	slices.Sort(repositories)
	fmt.Fprintln(table, "\nARTIFACT\tTAGS")
	for _, repository := range repositories {
		if repository == localregistry.BaseRepository {
			continue
		}
		tags, err := remote.List(host.Repo(repository))
		if err != nil {
			return err
		}
		slices.Sort(tags)
		fmt.Fprintf(table, "%s\t%s\n", repository, summarize(tags))
	}
	return table.Flush()
}

// summarize returns the tags that users choose, and the number of those that belong to a digest: signatures, bills of
// materials and provenance.
func summarize(tags []string) string {
	attached := len(tags)
	tags = slices.DeleteFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, "sha256-") })
	attached -= len(tags)
	return fmt.Sprintf("%s and %d for digests", strings.Join(tags, ", "), attached)
}
