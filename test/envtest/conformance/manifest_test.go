// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/targets"
)

// manifestDeployer returns the conformance subject for the manifest deployer. Each item deploys a ConfigMap. A slow
// item waits for a field in its ConfigMap.
func manifestDeployer() conformance.Subject {
	return conformance.Subject{
		Name: "manifest", Type: manifest.Type,
		Start: conformance.NewStartFunc(func() deployerlib.DeployerArgs {
			return manifest.Args(&manifestv1alpha2.Configuration{TargetSelector: newSelectors()}, manifest.Options{
				Targets: targets.Policy{AllowPrivateHosts: true},
			})
		}),
		Target: newTargetSpec, TargetLabels: ourTargets, OtherTargetLabels: otherTargets,
		Valid: func(key types.NamespacedName) any { return manifestConfig(nil, configMap(key)) },
		Invalid: func(key types.NamespacedName, note string) any {
			return manifestConfig(map[string]any{"updateStrategy": note}, configMap(key))
		},
		Slow: func(key types.NamespacedName) any {
			return manifestConfig(map[string]any{"readinessChecks": map[string]any{"custom": []any{map[string]any{
				"name":             "told",
				"resourceSelector": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": key.Name, "namespace": key.Namespace}},
				"requirements": []any{map[string]any{
					"jsonPath": ".data.ready", "operator": "==", "values": []any{map[string]any{"value": "true"}},
				}},
			}}}}, configMap(key))
		},
		Finish: setReady, Deployed: configMapStands,
		Options: conformance.Options{SideBySide: true},
		Bounds:  conformance.Bounds{Finish: time.Minute, Timeout: 4 * time.Second},
	}
}

// manifestConfig returns a configuration of the manifest deployer with one manifest and the given fields.
func manifestConfig(fields map[string]any, object any) any {
	out := map[string]any{
		"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
		"manifests": []any{map[string]any{"manifest": object}},
	}
	maps.Copy(out, fields)
	return out
}

// configMap returns the manifest of a ConfigMap with the name of the item.
func configMap(key types.NamespacedName) any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "1"},
		"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name},
	}
}

// setReady writes a field to the ConfigMap of an item. The slow items of several subjects wait for this field.
func setReady(ctx context.Context, c client.Client, key types.NamespacedName) error {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = key.Namespace, key.Name
	return c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"ready":"true"}}`)))
}

// configMapStands reports whether a ConfigMap with the name of the item exists.
func configMapStands(ctx context.Context, c client.Client, key types.NamespacedName) (bool, error) {
	return hasObject(ctx, c, &corev1.ConfigMap{}, key.Namespace, key.Name)
}

// hasObject reports whether an object exists.
func hasObject(ctx context.Context, c client.Client, object client.Object, namespace, name string) (bool, error) {
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	return err == nil, client.IgnoreNotFound(err)
}

// newTargetSpec returns the spec of a Target for the cluster that contains the items.
func newTargetSpec(cfg *rest.Config) (lsv1alpha1.TargetSpec, error) {
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
	return lsv1alpha1.TargetSpec{
		Type: "landscaper.gardener.cloud/kubernetes-cluster", Configuration: lsv1alpha1.NewAnyJSONPointer(raw),
	}, err
}
