// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	deployitems "github.com/deployerkit/deployerkit/examples/deploy-items"
)

// workloadNamespace is the namespace of the objects that the item "logging" deploys.
const workloadNamespace = "logging"

// createTarget creates the Target "workload". The Target refers to the control plane itself.
func (st *env) createTarget(ctx context.Context) error {
	config, err := json.Marshal(map[string]string{"kubeconfig": string(st.cp.Kubeconfig())})
	if err != nil {
		return fmt.Errorf("encode target: %w", err)
	}
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name = namespace, "workload"
	target.Spec.Type = "landscaper.gardener.cloud/kubernetes-cluster"
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer(config)
	if err := st.client.Create(ctx, target); err != nil {
		return fmt.Errorf("create target: %w", err)
	}
	return nil
}

// tamper changes two fields of the Deployment "agent", as a user might do by mistake.
func tamper(ctx context.Context, st *env) error {
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := st.client.SubResource("scale").Patch(ctx, agent(), scale, client.FieldOwner("kubectl-scale")); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":null}}}`))
	if err := st.client.Patch(ctx, agent(), label, client.FieldOwner("kubectl-label")); err != nil {
		return fmt.Errorf("change label: %w", err)
	}
	return nil
}

// agent returns a Deployment in which only the name and the namespace of the Deployment "agent" are set.
func agent() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = workloadNamespace, "agent"
	return d
}

// agentIs requires that the Deployment "agent" has the given number of replicas and the given label.
func agentIs(replicas int32, team string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		d := agent()
		if err := st.client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != replicas || *d.Spec.Replicas != replicas || d.Labels["team"] != team {
			return fmt.Errorf("%d of %d replicas are ready, and the label team is %q", d.Status.ReadyReplicas, *d.Spec.Replicas, d.Labels["team"])
		}
		return nil
	}
}

// shrink removes the dashboards from the configuration of the item "logging".
func shrink(ctx context.Context, st *env) error {
	file, err := deployitems.Files.ReadFile("logging.yaml")
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	di := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(file, &di.Object); err != nil {
		return fmt.Errorf("decode manifest: %w", err)
	}
	manifests, _, err := unstructured.NestedSlice(di.Object, "spec", "config", "manifests")
	if err != nil {
		return fmt.Errorf("find the field manifests: %w", err)
	}
	manifests = slices.DeleteFunc(manifests, func(m any) bool {
		entry, _ := m.(map[string]any)
		name, _, _ := unstructured.NestedString(entry, "manifest", "metadata", "name")
		return name == "dashboards"
	})
	config, _, err := unstructured.NestedMap(di.Object, "spec", "config")
	if err != nil {
		return fmt.Errorf("find the field config: %w", err)
	}
	config["manifests"] = manifests
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	return st.classic.Update(ctx, item("logging"), string(raw))
}

// exists reports whether an object exists.
func exists(ctx context.Context, st *env, kind, namespace, name string) (bool, error) {
	obj, key := &unstructured.Unstructured{}, types.NamespacedName{Namespace: namespace, Name: name}
	obj.SetAPIVersion("v1")
	obj.SetKind(kind)
	if kind == "Deployment" {
		obj.SetAPIVersion("apps/v1")
	}
	err := st.client.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func isThere(kind, namespace, name string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		found, err := exists(ctx, st, kind, namespace, name)
		if err == nil && !found {
			err = fmt.Errorf("%s %s does not exist", kind, name)
		}
		return err
	}
}

func isGone(kind, namespace, name string) condition {
	return func(ctx context.Context, st *env, _ *lsv1alpha1.DeployItem) error {
		found, err := exists(ctx, st, kind, namespace, name)
		if err == nil && found {
			err = fmt.Errorf("%s %s still exists", kind, name)
		}
		return err
	}
}
