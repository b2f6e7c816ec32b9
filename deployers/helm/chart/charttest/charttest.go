// SPDX-License-Identifier: Apache-2.0

// Package charttest builds charts for tests.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"maps"
	"path"
	"slices"
)

// Files are the files of a chart, by their paths relative to its directory.
type Files map[string]string

// With returns a copy of the files, with further files added or replaced.
func (f Files) With(more Files) Files {
	out := maps.Clone(f)
	maps.Copy(out, more)
	return out
}

// Archive returns the chart as a compressed tar file. Equal files result in equal archives. A missing Chart.yaml is
// added. It describes version 1.0.0 of a chart named "test".
func (f Files) Archive() []byte {
	files := Files{"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\n"}.With(f)
	var entries []tar.Header
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, tar.Header{Name: path.Join("test", name), Typeflag: tar.TypeReg})
	}
	return Tar(entries, func(name string) string { return files[name[len("test/"):]] })
}

// Base64 returns the archive in the form of the field chart.archive.raw.
func (f Files) Base64() string { return base64.StdEncoding.EncodeToString(f.Archive()) }

// Tar returns a compressed tar file with the given entries. The function `content` returns the content of a regular
// file by its name.
func Tar(entries []tar.Header, content func(name string) string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for _, header := range entries {
		body := ""
		if header.Typeflag == tar.TypeReg {
			body = content(header.Name)
		}
		header.Mode, header.Size = 0o644, int64(len(body))
		_ = writer.WriteHeader(&header) // a buffer returns no errors
		_, _ = writer.Write([]byte(body))
	}
	_ = writer.Close()
	_ = zipped.Close()
	return out.Bytes()
}
