// SPDX-License-Identifier: Apache-2.0

// Package helm runs Helm with the charts of this repository, for tests and generators.
package helm

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

//go:generate go run ../generate

// Timeout is the time limit of an operation on a cluster.
const Timeout = 2 * time.Minute

// Kubernetes is the version of the API server that the tests use.
var Kubernetes = common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}

// Rendered is the output of a chart for given values.
type Rendered struct {
	Manifest string
	Notes    string
	Objects  []*unstructured.Unstructured
}

// Values decodes chart values from YAML.
func Values(text string) (map[string]any, error) {
	values := map[string]any{}
	return values, yaml.Unmarshal([]byte(text), &values)
}

// Render renders a chart, as `helm template` does. The chart is a directory or a package. Render returns an error if
// the values do not match the schema, if a template fails, or if the chart has hooks.
func Render(dir, name, namespace, values string) (*Rendered, error) {
	loaded, given, err := load(dir, values)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.ReleaseName, install.Namespace, install.WaitStrategy = action.DryRunClient, name, namespace, kube.HookOnlyStrategy
	install.KubeVersion = &Kubernetes
	out, err := install.Run(loaded, given)
	if err != nil {
		return nil, err
	}
	done := out.(*release.Release)
	objects, err := Objects(done.Manifest)
	if len(done.Hooks) > 0 {
		return nil, fmt.Errorf("the chart has %d hooks", len(done.Hooks))
	}
	return &Rendered{Manifest: done.Manifest, Notes: done.Info.Notes, Objects: objects}, err
}

func load(dir, values string) (*chart.Chart, map[string]any, error) {
	loaded, err := loader.Load(dir)
	if err != nil {
		return nil, nil, err
	}
	given, err := Values(values)
	return loaded, given, err
}

// Objects decodes the objects of a manifest.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, document)
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
	return out, nil
}

// RunLint lints a chart, as `helm lint --strict` does. It returns all messages, including those that are only hints.
func RunLint(dir, values string) ([]string, error) {
	given, err := Values(values)
	if err != nil {
		return nil, err
	}
	lint := action.NewLint()
	lint.Strict, lint.Namespace, lint.KubeVersion = true, "ls-system", &Kubernetes
	result := lint.Run([]string{dir}, given)
	var found []string
	for _, message := range result.Messages {
		found = append(found, message.Error())
	}
	for _, err := range result.Errors {
		found = append(found, err.Error())
	}
	return found, nil
}

// Cluster is a cluster with the namespace into which charts are installed.
type Cluster struct {
	Config    *rest.Config
	Namespace string
	// ClientSide specifies that Helm merges objects on the client side, as Helm 3 does.
	ClientSide bool
}

// Install installs a chart.
func (c *Cluster) Install(ctx context.Context, dir, name, values string) (*release.Release, error) {
	loaded, given, err := load(dir, values)
	if err != nil {
		return nil, err
	}
	config, err := c.newConfiguration()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, c.Namespace, true
	install.ServerSideApply, install.WaitStrategy, install.Timeout = !c.ClientSide, kube.HookOnlyStrategy, Timeout
	out, err := install.RunWithContext(ctx, loaded, given)
	if err != nil {
		return nil, fmt.Errorf("install %s: %w", name, err)
	}
	return out.(*release.Release), nil
}

// Upgrade upgrades a release to another chart or to other values.
func (c *Cluster) Upgrade(ctx context.Context, dir, name, values string) (*release.Release, error) {
	loaded, given, err := load(dir, values)
	if err != nil {
		return nil, err
	}
	config, err := c.newConfiguration()
	if err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = c.Namespace, kube.HookOnlyStrategy, Timeout
	upgrade.ServerSideApply = fmt.Sprint(!c.ClientSide)
	out, err := upgrade.RunWithContext(ctx, name, loaded, given)
	if err != nil {
		return nil, fmt.Errorf("upgrade %s: %w", name, err)
	}
	return out.(*release.Release), nil
}

// Values returns the values that the user set for a release, as `helm get values` does.
func (c *Cluster) Values(name string) (string, error) {
	config, err := c.newConfiguration()
	if err != nil {
		return "", err
	}
	values, err := action.NewGetValues(config).Run(name)
	if err != nil {
		return "", fmt.Errorf("get values of %s: %w", name, err)
	}
	out, err := yaml.Marshal(values)
	return string(out), err
}

// Uninstall removes a release.
func (c *Cluster) Uninstall(name string) error {
	config, err := c.newConfiguration()
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, Timeout
	_, err = uninstall.Run(name)
	return err
}

func (c *Cluster) newConfiguration() (*action.Configuration, error) {
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := config.Init(&getter{cluster: c}, c.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("set up Helm: %w", err)
	}
	return config, nil
}

// getter gives Helm access to a cluster.
type getter struct{ cluster *Cluster }

var _ genericclioptions.RESTClientGetter = &getter{}

// ToRESTConfig returns a copy of the config of the cluster.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.cluster.Config), nil }

// ToDiscoveryClient returns a discovery client with an in-memory cache.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.cluster.Config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client), nil
}

// ToRESTMapper returns a mapper for the kinds of the cluster.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(client), nil
}

// ToRawKubeConfigLoader returns a loader that only determines the namespace.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.cluster.Namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}

// FindChart returns the directory of a chart of this repository.
func FindChart(name string) string { return filepath.Join(Root(), "charts", name) }

// Root returns the root directory of the repository.
func Root() string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "deployermain")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	panic("the working directory is not in the repository of DeployerKit")
}
