// SPDX-License-Identifier: Apache-2.0

// Command component writes the component archives of the deployers, under the names that landscaper-service expects:
//
//	go run ./component registry.example/deployers v0.1.0 dist
//
// The archives refer to the images and charts of the given version in the given registry.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed blueprint.yaml
var blueprint string

//go:embed descriptor.yaml
var descriptor string

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "component: want a registry, a version and a directory")
		os.Exit(2)
	}
	for _, name := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
		if err := write(name, os.Args[1], os.Args[2], filepath.Join(os.Args[3], name)); err != nil {
			fmt.Fprintln(os.Stderr, "component:", err)
			os.Exit(1)
		}
	}
}

// write writes the archive of a deployer. The archive contains the component descriptor and, as a blob, the blueprint.
func write(name, registry, version, dir string) error {
	t, err := template.New("descriptor").Parse(descriptor)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]string{"Name": name, "Registry": registry, "Version": version, "ChartVersion": strings.TrimPrefix(version, "v")}); err != nil {
		return err
	}
	blob, err := newArchive("blueprint.yaml", strings.ReplaceAll(blueprint, "manifest-deployer", name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "component-descriptor.yaml"), out.Bytes(), 0o644), //nolint:gosec // to be published
		os.WriteFile(filepath.Join(dir, "blobs", "blueprint.tar.gz"), blob, 0o644),        //nolint:gosec // to be published
	)
}

// newArchive returns a reproducible archive that contains a single file.
func newArchive(name, content string) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = archive.Write([]byte(content))
	}
	err = errors.Join(err, archive.Close(), compressed.Close())
	return out.Bytes(), err
}
