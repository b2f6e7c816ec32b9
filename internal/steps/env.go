// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ClusterTargetType is the type of Targets that contain a kubeconfig.
const ClusterTargetType = "landscaper.gardener.cloud/kubernetes-cluster"

// Env is the environment of a scenario.
type Env struct {
	client.Client // reads from the API server

	// Namespace is the namespace of the Installations and the deploy items.
	Namespace string
	// TargetConfig is the configuration of the Targets: a JSON object with the field kubeconfig.
	TargetConfig []byte

	jobs map[string]string    // last job of each Installation, see StoreJobs
	uids map[string]types.UID // see StoreUID
}

// NewEnv returns an Env for a namespace, with a kubeconfig for the Targets.
func NewEnv(c client.Client, namespace string, kubeconfig []byte) (*Env, error) {
	config, err := json.Marshal(map[string]string{"kubeconfig": string(kubeconfig)})
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of Targets: %w", err)
	}
	return &Env{Client: c, Namespace: namespace, TargetConfig: config, jobs: map[string]string{}, uids: map[string]types.UID{}}, nil
}

// Key returns a name in the namespace of the scenario.
func (e *Env) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: e.Namespace, Name: name}
}

// ContextExists expects that Landscaper has created the default Context of the namespace.
func ContextExists(ctx context.Context, e *Env) error {
	return e.Get(ctx, e.Key(lsv1alpha1.DefaultContextName), &lsv1alpha1.Context{})
}

// CreateTarget returns an action that creates a Target, or restores its configuration.
func CreateTarget(name string) Func {
	return func(ctx context.Context, e *Env) error {
		t := &lsv1alpha1.Target{}
		t.Namespace, t.Name = e.Namespace, name
		_, err := controllerutil.CreateOrUpdate(ctx, e, t, func() error {
			t.Spec.Type, t.Spec.Configuration = ClusterTargetType, lsv1alpha1.NewAnyJSONPointer(e.TargetConfig)
			return nil
		})
		return err
	}
}

// DataObjectHas expects that a DataObject has a value, which is given as JSON.
func DataObjectHas(name, want string) Func {
	return func(ctx context.Context, e *Env) error {
		data := &lsv1alpha1.DataObject{}
		if err := e.Get(ctx, e.Key(name), data); err != nil {
			return err
		}
		if got := string(data.Data.RawMessage); got != want {
			return fmt.Errorf("the value is %s, not %s", got, want)
		}
		return nil
	}
}

// SetAnnotation sets an annotation of an object.
func (e *Env) SetAnnotation(ctx context.Context, obj client.Object, key, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("encode the annotation: %w", err)
	}
	return e.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body))
}
