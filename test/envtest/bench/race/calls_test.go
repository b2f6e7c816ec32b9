// SPDX-License-Identifier: Apache-2.0

package race

import "testing"

func TestRequests(t *testing.T) {
	for line, want := range map[string]int{
		`apiserver_request_total{code="200",resource="configmaps",scope="resource",verb="APPLY"} 1234`:                 1234,
		`apiserver_request_total{code="200",resource="deployitems",subresource="status",verb="PATCH"} 1e+06`:           1000000,
		`apiserver_request_total{code="200",resource="configmaps",scope="cluster",verb="WATCH"} 7`:                     0,
		`apiserver_request_total{code="200",resource="leases",scope="resource",verb="PUT"} 7`:                          0,
		`apiserver_request_duration_seconds_count{resource="configmaps",scope="resource",verb="APPLY"} 7`:              0,
		`# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, resource="configmaps"`: 0,
	} {
		if got := parseRequests(line); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}
