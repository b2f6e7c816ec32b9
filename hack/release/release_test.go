// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	for _, args := range [][]string{nil, {"cli"}, {"cli", "v0.1.0"}, {"notes", "v0.1.0"}, {"api"}, {"unknown", "v0.1.0"}} {
		if err := run(io.Discard, args); err != errUsage { //nolint:errorlint // it is not wrapped
			t.Errorf("run(%q): got %v, want %v", args, err, errUsage)
		}
	}
}

func TestFindSection(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## [v0.2.0] - 2027-01-01\n\n- second\n\n## 0.1.0\n\n### Added\n\n- first\n"
	for version, want := range map[string]string{"v0.1.0": "### Added\n\n- first\n", "v0.2.0": "- second\n", "v0.3.0": "- new\n"} {
		t.Run("release notes are the section of "+version+" [Q2]", func(t *testing.T) {
			got, err := findSection(changelog, version)
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	t.Run("a changelog without the section is an error", func(t *testing.T) {
		if _, err := findSection("# Changelog\n\n## Unreleased\n\n## v0.1.0\n\n- first\n", "v0.2.0"); err == nil {
			t.Error("got no error")
		}
	})
}

func TestSelectPlatforms(t *testing.T) {
	for _, names := range [][]string{nil, {"windows/amd64", "linux/arm64"}} {
		got, err := selectPlatforms(names)
		check(t, err)
		var list []string
		for _, p := range got {
			list = append(list, p.os+"/"+p.arch)
		}
		if names == nil && len(list) != len(platforms) || names != nil && !slices.Equal(list, names) {
			t.Errorf("selectPlatforms(%q) = %q", names, list)
		}
	}
	for _, name := range []string{"plan9/amd64", "linux", ""} {
		if _, err := selectPlatforms([]string{name}); err == nil {
			t.Errorf("selectPlatforms(%q) succeeded", name)
		}
	}
}

func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "deployerkit"), "program")
	writeFile(t, filepath.Join(dir, "LICENSE"), "licence")
	files := []string{filepath.Join(dir, "deployerkit"), filepath.Join(dir, "LICENSE")}
	modified := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	want := []string{"-rwxr-xr-x deployerkit program", "-rw-r--r-- LICENSE licence"}
	for _, p := range platforms {
		t.Run("the archive for "+p.os+"/"+p.arch+" contains the program and is always the same [Q1]", func(t *testing.T) {
			first, err := writeArchive(filepath.Join(dir, p.archive("v0.1.0")), p, files, modified)
			check(t, err)
			content := readFile(t, first)
			again, err := writeArchive(filepath.Join(t.TempDir(), "again"), p, files, modified)
			check(t, err)
			if !bytes.Equal(content, readFile(t, again)) {
				t.Error("two archives differ")
			}
			list := listTar
			if p.os == "windows" {
				list = listZip
			}
			if diff := cmp.Diff(want, list(t, content)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func listTar(t *testing.T, content []byte) []string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	check(t, err)
	archive := tar.NewReader(compressed)
	var out []string
	for {
		header, err := archive.Next()
		if err == io.EOF { //nolint:errorlint // it is not wrapped
			return out
		}
		check(t, err)
		file, err := io.ReadAll(archive)
		check(t, err)
		out = append(out, header.FileInfo().Mode().String()+" "+header.Name+" "+string(file))
	}
}

func listZip(t *testing.T, content []byte) []string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	check(t, err)
	var out []string
	for _, entry := range archive.File {
		r, err := entry.Open()
		check(t, err)
		file, err := io.ReadAll(r)
		check(t, err)
		out = append(out, entry.Mode().String()+" "+entry.Name+" "+string(file))
	}
	return out
}

func TestWriteChecksums(t *testing.T) {
	t.Run("the checksums are those of sha256sum, without the signatures [Q1]", func(t *testing.T) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "b"), "second")
		writeFile(t, filepath.Join(dir, "a", "c"), "first")
		writeFile(t, filepath.Join(dir, "provenance.sigstore.json"), "{}")
		check(t, writeChecksums(dir))
		check(t, writeChecksums(dir)) // checksums.txt does not contain itself
		cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "checksums.txt")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		check(t, err)
		if string(out) != "a/c: OK\nb: OK\n" {
			t.Errorf("got %s", out)
		}
	})
	t.Run("an empty directory is an error", func(t *testing.T) {
		if err := writeChecksums(t.TempDir()); err == nil {
			t.Error("got no error")
		}
	})
}

func TestMayBreak(t *testing.T) {
	for _, test := range []struct {
		earlier, version string
		want             bool
	}{
		{"v0.1.0", "v0.1.1", false},
		{"v0.1.0", "v0.2.0", true},
		{"v0.9.0", "v1.0.0", true},
		{"v1.1.0", "v1.2.0", false},
		{"v1.1.0", "v2.0.0", true},
	} {
		t.Run("changes from "+test.earlier+" to "+test.version+" [Q3]", func(t *testing.T) {
			if got := mayBreak(test.earlier, test.version); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestCheckAPI compares small modules with apidiff.
func TestCheckAPI(t *testing.T) {
	newModule := func(t *testing.T, source string) repository {
		t.Helper()
		root := t.TempDir()
		tools, err := filepath.Abs("../releasetools")
		check(t, err)
		check(t, os.Mkdir(filepath.Join(root, "hack"), 0o755))
		check(t, os.Symlink(tools, filepath.Join(root, "hack", "releasetools")))
		writeFile(t, filepath.Join(root, "go.mod"), "module "+module+"\n\ngo 1.26.0\n")
		writeFile(t, filepath.Join(root, "patch", "patch.go"), "package patch\n\nfunc Apply() {}\n")
		runGit(t, root, "init", "-q")
		runGit(t, root, "add", "go.mod", "patch")
		runGit(t, root, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "first")
		runGit(t, root, "tag", "v0.1.0")
		writeFile(t, filepath.Join(root, "patch", "patch.go"), source)
		return repository{root: root, out: io.Discard}
	}
	for name, test := range map[string]struct {
		source, version string
		fails           bool
	}{
		"a new function in a patch version is allowed [Q3]":      {"package patch\n\nfunc Apply() {}\n\nfunc Plan() {}\n", "v0.1.1", false},
		"a removed function in a patch version is an error [Q3]": {"package patch\n", "v0.1.1", true},
		"a removed function in a minor version is allowed [Q3]":  {"package patch\n", "v0.2.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := newModule(t, test.source).checkAPI(test.version); (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("the API is not compared if there is no tag, and one line says so [Q3]", func(t *testing.T) {
		r := newModule(t, "package patch\n")
		runGit(t, r.root, "tag", "-d", "v0.1.0")
		out := &strings.Builder{}
		r.out = out
		check(t, r.checkAPI("v0.1.1"))
		if out.String() != "There is no tag, so the API is not compared.\n" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("a version that is not semantic is an error", func(t *testing.T) {
		if err := (repository{root: t.TempDir(), out: io.Discard}).checkAPI("1.0"); err == nil {
			t.Error("got no error")
		}
	})
}

// TestPlatforms requires three systems.
func TestPlatforms(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run("the program exists for "+system+" [Q1]", func(t *testing.T) {
			if !slices.ContainsFunc(platforms, func(p platform) bool { return p.os == system }) {
				t.Error("it does not")
			}
		})
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(content), 0o600))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	check(t, err)
	return content
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
