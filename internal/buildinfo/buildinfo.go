// SPDX-License-Identifier: Apache-2.0

// Package buildinfo describes how the running program was built.
package buildinfo

import (
	"fmt"
	"runtime/debug"
)

// GetVersion returns the version of the main module, the version of Go and the commit, as far as the go command has
// recorded them in the program.
func GetVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return formatVersion(info)
}

func formatVersion(info *debug.BuildInfo) string {
	commit := "unknown"
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	return fmt.Sprintf("%s, %s, commit %s", info.Main.Version, info.GoVersion, commit)
}
