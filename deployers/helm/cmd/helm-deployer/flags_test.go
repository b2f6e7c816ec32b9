// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener/landscaper/apis/config"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/targets"
)

// parse parses the flags of the program.
func parse(t *testing.T, args ...string) (*program, error) {
	t.Helper()
	p := &program{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.flags.addTo(fs)
	return p, fs.Parse(args)
}

func TestFlags(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "a:b")
	if err := os.WriteFile(ca, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args    []string
		options helm.Options
		sources chart.Options
	}{
		"without flags, everything is as strict as it can be": {
			nil, helm.Options{Strategy: apply.StrategyApply, SharedKinds: apply.DefaultSharedKinds()}, chart.Options{},
		},
		"each flag sets its option [E30]": {
			[]string{
				"--default-strategy=update", "--recreate", "--adoption=always", "--clean-up-first", "--allow-http", "--shared-kinds=", "--target-limit-object=16Mi",
				"--chart-host=registry.example.com:private,plain-http", "--chart-host=repo.example.com:8443:insecure,ca=" + ca, "--allow-private-chart-hosts",
				"--chart-resolve-timeout=5s", "--chart-fetch-timeout=1m", "--chart-cache-size=1Mi", "--chart-limit-archive=2Mi", "--chart-limit-unpacked=3Mi",
				"--chart-limit-files=4", "--render-limit-time=6s", "--render-limit-output=7Mi", "--render-limit-concurrent=8", "--operation-limit-target=9", "--operation-limit-total=10", "--docker-config=/a", "--docker-config=/b",
			},
			helm.Options{
				Strategy: apply.StrategyUpdate, Recreate: true, Adoption: apply.AdoptionAlways, CleanUpFirst: true, Targets: targets.Policy{AllowHTTP: true},
				TargetLimits: targets.Limits{Object: 16 << 20}, ChartLimits: chart.Limits{Archive: 2 << 20, Unpacked: 3 << 20, Files: 4},
				RenderLimits: release.Limits{Time: 6 * time.Second, Concurrent: 8}, Operations: helm.OperationLimits{PerTarget: 9, Total: 10},
			},
			chart.Options{
				OCI: &config.OCIConfiguration{ConfigFiles: []string{"/a", "/b"}},
				Hosts: []chart.Host{
					{Name: "registry.example.com", AllowPrivateAddress: true, PlainHTTP: true},
					{Name: "repo.example.com:8443", InsecureSkipVerify: true, CAData: []byte("PEM")},
				},
				AllowPrivateAddresses: true, ResolveTimeout: 5 * time.Second, FetchTimeout: time.Minute, CacheBytes: 1 << 20,
			},
		},
		"the cache can be disabled [Ex31]": {
			[]string{"--chart-cache-size=0"}, helm.Options{Strategy: apply.StrategyApply, SharedKinds: apply.DefaultSharedKinds()}, chart.Options{CacheBytes: -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parse(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.options, p.flags.options, cmpopts.IgnoreFields(helm.Options{}, "WrapTransport", "Metrics"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("options: -want, +got:\n%s", diff)
			}
			got, err := p.flags.newChartOptions(nil)
			if diff := cmp.Diff(tc.sources, got, cmpopts.IgnoreFields(chart.Options{}, "Observe")); diff != "" || err != nil {
				t.Errorf("sources: %v, -want, +got:\n%s", err, diff)
			}
		})
	}
}

func TestInvalidFlags(t *testing.T) {
	for name, tc := range map[string]struct{ arg, want string }{
		"a host without settings": {"--chart-host=registry.example.com", `--chart-host "registry.example.com": want HOST[:PORT]:SETTING`},
		"an unknown setting":      {"--chart-host=a.example:public", `unknown setting "public", want private`},
		"a setting with a value":  {"--chart-host=a.example:private=1", `unknown setting "private=1"`},
		"a missing file":          {"--chart-host=a.example:ca=/does/not/exist", "no such file"},
		"an invalid host":         {"--chart-host=a b:private", `"a b" is not a host`},
		"a negative size":         {"--chart-limit-archive=-1", "must be positive"},
		"a size of zero":          {"--render-limit-output=0", "must be positive"},
		"a huge size":             {"--chart-cache-size=3Gi", "less than 2Gi"},
		"a size without a number": {"--chart-limit-unpacked=x", "quantities must match"},
		"a negative number":       {"--chart-limit-files=-1", "must not be negative"},
		"a negative limit":        {"--operation-limit-total=-1", "must not be negative"},
		"a negative time":         {"--render-limit-time=-1s", "must not be negative"},
		"an unknown strategy":     {"--default-strategy=replace", `default strategy: is "replace"`},
		"a missing docker config": {"--docker-config=/does/not/exist", "no such file"},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			p, err := parse(t, tc.arg)
			if err == nil {
				_, err = p.newArgs()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error is %v, want %q", tc.arg, err, tc.want)
			}
		})
	}
}

func TestConfigurationFile(t *testing.T) {
	p, err := parse(t, "--docker-config=b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.flags.newChartOptions(&config.OCIConfiguration{ConfigFiles: []string{"a"}, AllowPlainHttp: true})
	want := &config.OCIConfiguration{ConfigFiles: []string{"a", "b"}, AllowPlainHttp: true}
	if diff := cmp.Diff(want, got.OCI); diff != "" || err != nil {
		t.Errorf("[E30] %v, -want, +got:\n%s", err, diff)
	}
	p.config.OCI = &config.OCIConfiguration{InsecureSkipVerify: true}
	p.flags.dockerConfigs = nil
	if _, err := p.newArgs(); err == nil || !strings.Contains(err.Error(), "allowPlainHttp and insecureSkipVerify apply only to the hosts") {
		t.Errorf("[E30] insecureSkipVerify for all hosts: the error is %v", err)
	}
}
