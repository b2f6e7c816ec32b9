// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestFormatVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}
	if got, want := formatVersion(info), "v1.2.3, go1.26, commit unknown"; got != want {
		t.Errorf("text(...): want %q, got %q", want, got)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}
	if got, want := formatVersion(info), "v1.2.3, go1.26, commit abc"; got != want {
		t.Errorf("text(...): want %q, got %q", want, got)
	}
	if GetVersion() == "" {
		t.Error("Text() is empty")
	}
}
