// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platform is a system for which the program is built.
type platform struct{ os, arch string }

// platforms are the systems of a release.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// selectPlatforms returns the platforms with some names, such as linux/amd64, or all of them if there are no names.
func selectPlatforms(names []string) ([]platform, error) {
	if len(names) == 0 {
		return platforms, nil
	}
	var selected []platform
	for _, name := range names {
		system, arch, _ := strings.Cut(name, "/")
		if !slices.Contains(platforms, platform{system, arch}) {
			return nil, fmt.Errorf("%q is not a platform of a release", name)
		}
		selected = append(selected, platform{system, arch})
	}
	return selected, nil
}

// program is the name of the program in an archive.
func (p platform) program() string {
	if p.os == "windows" {
		return "deployerkit.exe"
	}
	return "deployerkit"
}

// archive is the name of the archive for a version, without the extension.
func (p platform) archive(version string) string {
	return fmt.Sprintf("deployerkit_%s_%s_%s", strings.TrimPrefix(version, "v"), p.os, p.arch)
}

// buildArchives builds the program for each platform. It writes an archive and a bill of materials for each one into dir.
func (r repository) buildArchives(version, dir string, platforms []platform) error {
	generator, err := r.tool("github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod")
	if err != nil {
		return err
	}
	seconds, err := r.run(nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // to be published
		return err
	}
	temporary, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // a temporary directory
	for _, p := range platforms {
		binary := filepath.Join(temporary, p.program())
		env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch}
		if _, err := r.run(env, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/deployerkit"); err != nil {
			return err
		}
		files := []string{binary, filepath.Join(r.root, "LICENSE"), filepath.Join(r.root, "README.md")}
		archive, err := writeArchive(filepath.Join(dir, p.archive(version)), p, files, time.Unix(unix, 0).UTC())
		if err != nil {
			return err
		}
		bill := filepath.Join(dir, p.archive(version)+".cdx.json")
		if _, err := r.run(nil, generator, "bin", "-json", "-noserial", "-notimestamp", "-version", version, "-output", bill, binary); err != nil {
			return err
		}
		fmt.Fprintln(r.out, "Built:", archive)
	}
	return nil
}

// writeArchive writes a zip file for Windows, and a tar.gz file for other systems. The first file is the program. All
// files have the given time. writeArchive returns the path of the archive.
func writeArchive(path string, p platform, files []string, modified time.Time) (string, error) {
	path += ".tar.gz"
	write := writeTar
	if p.os == "windows" {
		path, write = strings.TrimSuffix(path, ".tar.gz")+".zip", writeZip
	}
	out, err := os.Create(path) //nolint:gosec // the caller chooses the path
	if err != nil {
		return "", err
	}
	err = write(out, files, modified)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return path, err
}

func writeTar(out io.Writer, files []string, modified time.Time) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for i, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the release
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.Base(file), Mode: mode(i), Size: int64(len(content)), ModTime: modified}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(out io.Writer, files []string, modified time.Time) error {
	archive := zip.NewWriter(out)
	for i, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the release
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: filepath.Base(file), Method: zip.Deflate, Modified: modified}
		header.SetMode(os.FileMode(mode(i))) //nolint:gosec // 0o644 or 0o755
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// mode returns the permissions of the file at the given index: only the program is executable.
func mode(index int) int64 {
	if index == 0 {
		return 0o755
	}
	return 0o644
}
