// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package a\n\n// Nobody reads it.\n", "b.md": "It shall not.\nNobody does.\n", "c/d.md": "for ever\n",
		"gone.md": "nobody\n", "other.txt": "nobody\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		git := exec.Command("git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	if err := os.Remove(filepath.Join(root, "gone.md")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(&out, root, "# a list\nc/\nb.md Shall # quoted\n"); err == nil {
		t.Error("run: want an error")
	}
	if want := "a.go:3: \"Nobody\"\nb.md:2: \"Nobody\"\n"; out.String() != want {
		t.Errorf("run: got %q, want %q", out.String(), want)
	}
	if err := run(&out, root, "a.go\nb.md\nc/\n"); err != nil {
		t.Errorf("run: %v", err)
	}
}
