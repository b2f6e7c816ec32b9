// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/targets"
)

// TestConformance checks that the deployer fulfils the contract with Landscaper.
func TestConformance(t *testing.T) {
	t.Run("fulfils the contract [Ex38]", testContract)
}

func testContract(t *testing.T) {
	chart := charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata: {value: \"1\"}\n"}.Base64()
	valid := func(key types.NamespacedName) map[string]any {
		return map[string]any{
			"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": key.Name, "namespace": key.Namespace,
			"chart": map[string]any{"archive": map[string]any{"raw": chart}},
		}
	}
	conformance.Run(t, conformance.Subject{
		Name: "helm", Type: helm.Type,
		Start: conformance.NewStartFunc(func() deployerlib.DeployerArgs {
			return helm.Args(nil, helm.Options{Targets: targets.Policy{AllowPrivateHosts: true}})
		}),
		Target: clusterTarget,
		Valid:  func(key types.NamespacedName) any { return valid(key) },
		Invalid: func(key types.NamespacedName, note string) any {
			out := valid(key)
			out["updateStrategy"] = note
			return out
		},
		Slow: func(key types.NamespacedName) any {
			out := valid(key)
			out["readinessChecks"] = map[string]any{"custom": []any{map[string]any{
				"name":             "ready",
				"resourceSelector": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": key.Name, "namespace": key.Namespace}},
				"requirements":     []any{map[string]any{"jsonPath": ".data.ready", "operator": "==", "values": []any{map[string]any{"value": "true"}}}},
			}}}
			return out
		},
		Finish: func(ctx context.Context, c client.Client, key types.NamespacedName) error {
			cm := &corev1.ConfigMap{}
			cm.Namespace, cm.Name = key.Namespace, key.Name
			return c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"ready":"true"}}`)))
		},
		Deployed: func(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
			err := c.Get(ctx, key, &corev1.ConfigMap{})
			return err == nil, client.IgnoreNotFound(err)
		},
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute, Timeout: 4 * time.Second},
	})
}

// clusterTarget returns the spec of a Target for the cluster that contains the items.
func clusterTarget(cfg *rest.Config) (lsv1alpha1.TargetSpec, error) {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	kubeconfig, err := clientcmd.Write(*file)
	if err != nil {
		return lsv1alpha1.TargetSpec{}, err
	}
	raw, err := json.Marshal(map[string]any{"kubeconfig": string(kubeconfig)})
	return lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(raw)}, err
}
