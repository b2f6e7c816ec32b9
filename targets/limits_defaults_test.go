// SPDX-License-Identifier: Apache-2.0

package targets

import "testing"

// TestDefaultLimits checks the defaults that the documentation of Limits and docs/targets.md state.
func TestDefaultLimits(t *testing.T) {
	const mib = 1 << 20
	want := Limits{
		Object: 8 * mib, Page: 8 * mib, PageSize: 500, List: 64 * mib, Discovery: 8 * mib, Groups: 1000, Requests: 32,
		Reading: 32 * mib, Decoding: 96 * mib, WatchObjects: 20_000, WatchEvents: 1000, WatchBytes: 4 * mib,
	}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
