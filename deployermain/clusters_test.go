// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "https://example.org"}}]}`

func newLookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestThrottling(t *testing.T) {
	type limit struct {
		QPS   float32
		Burst int
	}
	none := limit{-1, 0}
	for name, tc := range map[string]struct {
		env       map[string]string
		host, res limit
	}{
		"no variable is set [O27]":    {nil, none, none},
		"all variables are set [O27]": {map[string]string{"LS_RESOURCE_CLIENT_BURST": "6", "LS_RESOURCE_CLIENT_QPS": "4", "LS_HOST_CLIENT_BURST": "3", "LS_HOST_CLIENT_QPS": "2"}, limit{2, 3}, limit{4, 6}},
		"one variable is set [O27]":   {map[string]string{"LS_RESOURCE_CLIENT_QPS": "4"}, none, limit{4, 60}},
		"invalid values [O27]":        {map[string]string{"LS_RESOURCE_CLIENT_QPS": "many", "LS_RESOURCE_CLIENT_BURST": "0", "LS_HOST_CLIENT_BURST": "-3"}, none, none},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, kubeconfig)
			limits := func(cfg *rest.Config) limit { return limit{cfg.QPS, cfg.Burst} }
			host, ls, err := parse(t, "--kubeconfig="+path, "--landscaper-kubeconfig="+path).loadConfigs(newLookup(tc.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]limit{tc.host, tc.res}, []limit{limits(host), limits(ls)}); diff != "" {
				t.Errorf("two clusters: -want, +got:\n%s", diff)
			}
			if host, ls, err = parse(t, "--kubeconfig="+path).loadConfigs(newLookup(tc.env)); err != nil || host != ls {
				t.Fatalf("one cluster: %v", err)
			}
			if diff := cmp.Diff(tc.res, limits(ls)); diff != "" {
				t.Errorf("one cluster: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestMissingKubeconfig(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no kubeconfig [F49]":                   {nil, nil, "host cluster: load kubeconfig: found none in the pod, $KUBECONFIG or ~/.kube/config; set one with --kubeconfig"},
		"missing file in the environment [F49]": {nil, map[string]string{"KUBECONFIG": none}, "$KUBECONFIG names " + none + ", which does not exist; set one with --kubeconfig"},
		"missing file of the flag [F49]":        {[]string{"--kubeconfig=" + none}, nil, "host cluster: load kubeconfig: stat " + none},
		"empty kubeconfig [F49]":                {[]string{"--kubeconfig=" + write(t, "{}")}, nil, "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			t.Setenv("KUBECONFIG", "")
			for key, value := range maps.All(tc.env) {
				t.Setenv(key, value)
			}
			_, _, err := parse(t, tc.args...).loadConfigs(newLookup(tc.env))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
