// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// holdDirectory makes the test binary create a directory and wait until it is killed.
const holdDirectory = "HOLD_DIRECTORY"

func TestMain(m *testing.M) {
	if os.Getenv(holdDirectory) != "" {
		if _, err := New("kit-", nil); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("ready")
		select {}
	}
	os.Exit(m.Run())
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func TestDirectory(t *testing.T) {
	create := func(t *testing.T, before func(string)) *Directory {
		t.Helper()
		d, err := New("kit-", before)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("a start removes only the directories of killed processes [F80]", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		killed := exec.Command(os.Args[0])
		killed.Env = append(os.Environ(), holdDirectory+"=1")
		out, err := killed.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "kit-*"))
		unlocked, link, file := filepath.Join(dir, "kit-unlocked"), filepath.Join(dir, "kit-link"), filepath.Join(dir, "kit-file")
		if err := errors.Join(os.Mkdir(unlocked, 0o700), os.Symlink(unlocked, link), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		first := create(t, nil)
		if len(left) != 1 || !fileExists(left[0]) {
			t.Fatalf("a directory in use was removed: %v", left)
		}
		_ = killed.Process.Kill()
		_ = killed.Wait()
		var removed []string
		second := create(t, func(path string) { removed = append(removed, path) })
		if fileExists(left[0]) || len(removed) != 1 || removed[0] != left[0] {
			t.Errorf("removed %v, want %v", removed, left)
		}
		for _, path := range []string{unlocked, link, file, first.Path, second.Path} {
			if !fileExists(path) {
				t.Errorf("%s was removed", path)
			}
		}
		for _, d := range []*Directory{first, second} {
			if err := errors.Join(d.Remove(), d.Remove()); err != nil || fileExists(d.Path) {
				t.Errorf("Remove: %v", err)
			}
		}
	})
	t.Run("a directory that cannot be created is an error", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
		if _, err := New("kit-", nil); err == nil {
			t.Error("want an error")
		}
	})
}
