// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestEndOnChange(t *testing.T) {
	write := func(t *testing.T, path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(t *testing.T, paths ...string) (context.Context, *clocktesting.FakeClock) {
		t.Helper()
		clk := clocktesting.NewFakeClock(time.Now())
		ctx, cancel := readAccess(paths...).cancelOnChange(t.Context(), logr.Discard(), clk)
		t.Cleanup(cancel)
		return ctx, clk
	}
	t.Run("a changed kubeconfig ends the process [O54]", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		write(t, path, "a")
		ctx, clk := start(t, "", path)
		write(t, path, "b")
		for limit := time.Now().Add(time.Minute); ctx.Err() == nil; {
			if time.Now().After(limit) {
				t.Fatal("the run continues")
			}
			clk.Step(accessPoll)
		}
	})
	t.Run("an unchanged, missing or empty kubeconfig does not end the process [O54]", func(t *testing.T) {
		same, missing, empty := filepath.Join(t.TempDir(), "same"), filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty")
		for _, path := range []string{same, missing, empty} {
			write(t, path, "a")
		}
		files := readAccess(same, missing, empty)
		write(t, same, "a")
		write(t, empty, "")
		if err := os.Remove(missing); err != nil {
			t.Fatal(err)
		}
		if path := files.findChanged(); path != "" {
			t.Errorf("changed() = %q, want no file", path)
		}
	})
	t.Run("a configuration without files is not watched [O54]", func(t *testing.T) {
		ctx, clk := start(t, "", "")
		if clk.HasWaiters() || ctx.Err() != nil {
			t.Error("it watches")
		}
	})
}
