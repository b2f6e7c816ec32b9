// SPDX-License-Identifier: Apache-2.0

// Command sign signs the images, the charts and the files of a release, and their provenance, with a cosign key:
//
//	COSIGN_PASSWORD=… go run ./sign -key cosign.key -commit "$(git rev-parse HEAD)" registry.example/deployers v0.1.0 dist
//
// The images and the charts must be in the registry. The command attaches their signatures and their provenance to
// them. The files must be in the directory: the packages of the charts, the component archives, and what checksums.txt
// lists, if it exists. The command writes their signed provenance to the file provenance.sigstore.json in that directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/deployerkit/deployerkit/test/envtest/charts/attest"
)

func main() {
	s := &attest.Signer{}
	key := flag.String("key", "", "the file with the private key")
	flag.StringVar(&s.Commit, "commit", "", "the commit of the release")
	flag.StringVar(&s.Source, "source", "", "the URI of the repository")
	flag.StringVar(&s.Builder, "builder", "", "the URI of what built the release")
	flag.Parse()
	if flag.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "sign: want a registry, a version and a directory")
		os.Exit(2)
	}
	s.Version = flag.Arg(1)
	if err := run(context.Background(), s, *key, flag.Arg(0), flag.Arg(2)); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s *attest.Signer, key, registry, dir string) error {
	content, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	if s.Key, err = attest.LoadKey(content, []byte(os.Getenv("COSIGN_PASSWORD"))); err != nil {
		return fmt.Errorf("load %s: %w", key, err)
	}
	chartVersion := strings.TrimPrefix(s.Version, "v")
	var files []string
	for _, program := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
		for _, artifact := range []string{program + ":" + s.Version, "charts/" + program + ":" + chartVersion} {
			ref, err := name.ParseReference(registry + "/" + artifact)
			if err != nil {
				return err
			}
			if err := s.SignArtifact(ctx, ref); err != nil {
				return err
			}
			fmt.Println("Signed:", ref)
		}
		files = append(files, program+"-"+chartVersion+".tgz", program+"/component-descriptor.yaml", program+"/blobs/blueprint.tar.gz")
	}
	listed, err := readChecksums(dir)
	if err != nil {
		return err
	}
	files = append(files, listed...)
	slices.Sort(files)
	bundle, err := s.SignFiles(ctx, dir, slices.Compact(files)...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "provenance.sigstore.json"), bundle, 0o644) //nolint:gosec // to be published
}

// readChecksums returns the name of checksums.txt and the names of the files that it lists, or nothing if the file does
// not exist.
func readChecksums(dir string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(dir, "checksums.txt")) //nolint:gosec // the directory of the release
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files := []string{"checksums.txt"}
	for line := range strings.Lines(string(content)) {
		_, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		if !found {
			return nil, fmt.Errorf("checksums.txt: %q is not a checksum with a name", line)
		}
		files = append(files, name)
	}
	return files, err
}
