// SPDX-License-Identifier: Apache-2.0

// Package clientflags provides flags for commands that read clusters: kubectl's flags for kubeconfigs, and the
// output format.
package clientflags

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// Flags contains the values of the flags that select the clusters.
type Flags struct {
	rules      *clientcmd.ClientConfigLoadingRules
	overrides  clientcmd.ConfigOverrides
	hostConfig string
}

// AddTo registers kubectl's flags: --kubeconfig, --context, --cluster, --user, --namespace and so on.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	fs.StringVar(&f.rules.ExplicitPath, "kubeconfig", "", "kubeconfig of the cluster with the deploy items (default: $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&f.hostConfig, "host-kubeconfig", "", "kubeconfig of the cluster in which the deployers run (default: the cluster with the deploy items)")
	clientcmd.BindOverrideFlags(&f.overrides, fs, clientcmd.RecommendedConfigOverrideFlags(""))
}

// Config returns a config for the cluster of the deploy items, and the default namespace. The namespace comes from the
// flag --namespace or from the kubeconfig.
func (f *Flags) Config() (*rest.Config, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("load kubeconfig: %w", err)
	}
	cfg, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", errors.New("load kubeconfig: there is none; set --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, "", fmt.Errorf("load kubeconfig: %w", err)
	}
	return withoutWarnings(cfg), namespace, nil
}

// ConfigForHost returns a config for the cluster in which the deployers run, or nil if no flag selects it.
func (f *Flags) ConfigForHost() (*rest.Config, error) {
	if f.hostConfig == "" {
		return nil, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", f.hostConfig)
	if err != nil {
		return nil, fmt.Errorf("--host-kubeconfig: %w", err)
	}
	return withoutWarnings(cfg), nil
}

// withoutWarnings returns a copy of a config. A client with this config is not throttled, and does not print warnings
// of the API server.
func withoutWarnings(cfg *rest.Config) *rest.Config {
	cfg.QPS, cfg.Burst = -1, 0
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg
}

// NewClient returns a client that reads directly from the API server.
func NewClient(cfg *rest.Config) (client.WithWatch, error) {
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme})
}

// ParseName splits an argument of the form NAMESPACE/NAME. If arg is only a name, ParseName returns the given
// namespace.
func ParseName(arg, namespace string) (ns, name string, err error) {
	if before, after, found := strings.Cut(arg, "/"); found {
		namespace, arg = before, after
	}
	if namespace == "" || arg == "" || strings.Contains(arg, "/") {
		return "", "", fmt.Errorf("%q: want NAME or NAMESPACE/NAME", arg)
	}
	return namespace, arg, nil
}

// These constants are the output formats.
const (
	Text = ""
	JSON = "json"
	YAML = "yaml"
)

// Print writes a value as JSON or YAML.
func Print(w io.Writer, format string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if format == YAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}

// ValidateFormat returns an error for an unknown output format.
func ValidateFormat(format string, formats ...string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return fmt.Errorf("--output %q: want %s", format, strings.Join(formats[1:], " or "))
}

// IsTerminal reports whether the standard output is a terminal that displays colors.
func IsTerminal() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd()))
}
