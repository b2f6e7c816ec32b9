// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gardener/landscaper/apis/config"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployermain/objectflags"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

// flags contains the values of the flags.
type flags struct {
	options helm.Options
	sources chart.Options

	dockerConfigs []string
	hosts         []string
	output        int64 // the limit for the output of a rendering
}

// addTo registers the flags.
func (f *flags) addTo(fs *pflag.FlagSet) {
	o, c := &f.options, &f.sources
	fs.StringVar((*string)(&o.Strategy), "default-strategy", string(apply.StrategyApply),
		"update strategy of deploy items with helmDeployment: false that set none: apply, update, patch, merge or mergeOverwrite; "+
			"the default of Landscaper's own Helm deployer is update")
	fs.BoolVar(&o.Recreate, "recreate", false,
		"delete and recreate objects whose immutable fields changed, instead of returning an error; only for deploy items with helmDeployment: false")
	objectflags.Add(fs, objectflags.Options{
		Targets: &o.Targets, TargetLimits: &o.TargetLimits, SharedKinds: &o.SharedKinds, Adoption: &o.Adoption, CleanUpFirst: &o.CleanUpFirst,
	})
	fs.StringArrayVar(&f.dockerConfigs, "docker-config", nil,
		"docker configuration file with credentials for registries and chart repositories, in addition to oci.configFiles of the configuration file; may be repeated")
	fs.StringArrayVar(&f.hosts, "chart-host", nil,
		"settings for a host of charts, as HOST[:PORT]:SETTING,…; the settings are: private (it may have a loopback, link-local or private address), "+
			"plain-http (without TLS), insecure (its certificate is not verified), ca=FILE (additional certificate authorities); may be repeated")
	fs.BoolVar(&c.AllowPrivateAddresses, "allow-private-chart-hosts", false,
		"download charts from loopback, link-local and private addresses, too, and from metadata services of cloud providers")
	fs.DurationVar(&c.ResolveTimeout, "chart-resolve-timeout", 0, "time to find out the digest of a chart (default 30s)")
	fs.DurationVar(&c.FetchTimeout, "chart-fetch-timeout", 0, "time to download a chart (default 2m0s)")
	fs.Var(size{&c.CacheBytes, true}, "chart-cache-size", "maximum size of all chart archives in the cache (default 64Mi); 0 disables the cache")
	fs.Var(size{&o.ChartLimits.Archive, false}, "chart-limit-archive", "maximum size of a chart archive (default 10Mi)")
	fs.Var(size{&o.ChartLimits.Unpacked, false}, "chart-limit-unpacked", "maximum size of all files in a chart archive (default 100Mi)")
	fs.IntVar(&o.ChartLimits.Files, "chart-limit-files", 0, "maximum number of files in a chart archive (default 10000)")
	fs.DurationVar(&o.RenderLimits.Time, "render-limit-time", 0, "maximum time of a rendering (default 30s)")
	fs.Var(size{&f.output, false}, "render-limit-output", "maximum size of the output of a rendering (default 16Mi)")
	fs.IntVar(&o.Operations.PerTarget, "operation-limit-target", 0, "maximum number of operations on releases that are under way in one target (default 50)")
	fs.IntVar(&o.Operations.Total, "operation-limit-total", 0, "maximum number of operations on releases that are under way (default 200)")
	fs.IntVar(&o.RenderLimits.Concurrent, "render-limit-concurrent", 0, "maximum number of renderings at the same time (default 2)")
}

// newChartOptions returns the options for the sources of charts. The parameter oci is the section of the configuration
// file, or nil.
func (f *flags) newChartOptions(oci *config.OCIConfiguration) (chart.Options, error) {
	out := f.sources
	if f.options.ChartLimits.Files < 0 || f.options.RenderLimits.Concurrent < 0 {
		return out, errors.New("--chart-limit-files, --render-limit-concurrent: must not be negative")
	}
	if f.options.Operations.PerTarget < 0 || f.options.Operations.Total < 0 {
		return out, errors.New("--operation-limit-target, --operation-limit-total: must not be negative")
	}
	if f.options.RenderLimits.Time < 0 || out.ResolveTimeout < 0 || out.FetchTimeout < 0 {
		return out, errors.New("--render-limit-time, --chart-resolve-timeout, --chart-fetch-timeout: must not be negative")
	}
	for _, text := range f.hosts {
		host, err := parseHost(text)
		if err != nil {
			return out, fmt.Errorf("--chart-host %q: %w", text, err)
		}
		out.Hosts = append(out.Hosts, host)
	}
	if oci != nil || len(f.dockerConfigs) > 0 {
		merged := config.OCIConfiguration{}
		if oci != nil {
			merged = *oci
		}
		merged.ConfigFiles = slices.Concat(merged.ConfigFiles, f.dockerConfigs)
		out.OCI = &merged
	}
	return out, nil
}

// parseHost parses the settings for a host, in the form HOST[:PORT]:SETTING,….
func parseHost(text string) (chart.Host, error) {
	at := strings.LastIndexByte(strings.SplitN(text, "=", 2)[0], ':') // the path of a file may contain colons
	if at < 1 {
		return chart.Host{}, errors.New("want HOST[:PORT]:SETTING,…")
	}
	host := chart.Host{Name: text[:at]}
	for setting := range strings.SplitSeq(text[at+1:], ",") {
		name, value, hasValue := strings.Cut(setting, "=")
		switch {
		case name == "ca" && value != "":
			data, err := os.ReadFile(value) //nolint:gosec // the operator names the file
			if err != nil {
				return host, err
			}
			host.CAData = data
		case hasValue:
			return host, fmt.Errorf("unknown setting %q", setting)
		case name == "private":
			host.AllowPrivateAddress = true
		case name == "plain-http":
			host.PlainHTTP = true
		case name == "insecure":
			host.InsecureSkipVerify = true
		default:
			return host, fmt.Errorf("unknown setting %q, want private, plain-http, insecure or ca=FILE", setting)
		}
	}
	return host, nil
}

// size is a flag value that is a number of bytes, such as 8Mi. Zero means the default.
type size struct {
	into *int64
	// disables is true if the text 0 is valid. It becomes -1.
	disables bool
}

// String returns the size, or "" if it is zero.
func (s size) String() string {
	switch {
	case s.into == nil || *s.into == 0:
		return ""
	case *s.into < 0:
		return "0"
	}
	return resource.NewQuantity(*s.into, resource.BinarySI).String()
}

// Set parses a quantity.
func (s size) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return err
	case q.IsZero() && s.disables:
		*s.into = -1
		return nil
	case q.Sign() <= 0 || q.CmpInt64(math.MaxInt32) > 0:
		return errors.New("must be positive and less than 2Gi")
	}
	*s.into = q.Value()
	return nil
}

// Type returns the type of the value for the help text.
func (size) Type() string { return "size" }
