// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiVersions contains the API versions of the kinds that do not belong to the core group.
var apiVersions = map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1"}

// NewObject returns an object that has only a kind, a namespace and a name. An empty namespace means the namespace of
// the scenario.
func (e *Env) NewObject(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(cmp.Or(apiVersions[kind], "v1"))
	u.SetKind(kind)
	u.SetNamespace(cmp.Or(namespace, e.Namespace))
	u.SetName(name)
	return u
}

// GetObject reads an object. An empty namespace means the namespace of the scenario.
func (e *Env) GetObject(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	u := e.NewObject(kind, namespace, name)
	err := e.Get(ctx, client.ObjectKeyFromObject(u), u)
	return u, err
}

// ObjectExists expects that an object exists. An empty namespace means the namespace of the scenario.
func ObjectExists(kind, namespace, name string) Func {
	return func(ctx context.Context, e *Env) error {
		_, err := e.GetObject(ctx, kind, namespace, name)
		return err
	}
}

// ObjectIsGone expects that an object does not exist. An empty namespace means the namespace of the scenario.
func ObjectIsGone(kind, namespace, name string) Func {
	return func(ctx context.Context, e *Env) error {
		_, err := e.GetObject(ctx, kind, namespace, name)
		if err == nil {
			return fmt.Errorf("%s %s still exists", kind, name)
		}
		return client.IgnoreNotFound(err)
	}
}

// StoreUID returns an action that stores the UID of an object in the namespace of the scenario, for [ObjectIsSame].
func StoreUID(kind, name string) Func {
	return func(ctx context.Context, e *Env) error {
		u, err := e.GetObject(ctx, kind, "", name)
		e.uids[kind+"/"+name] = u.GetUID()
		return err
	}
}

// ObjectIsSame expects that an object still has the UID that [StoreUID] stored.
func ObjectIsSame(kind, name string) Func {
	return func(ctx context.Context, e *Env) error {
		u, err := e.GetObject(ctx, kind, "", name)
		if err == nil && u.GetUID() != e.uids[kind+"/"+name] {
			err = fmt.Errorf("%s %s was recreated", kind, name)
		}
		return err
	}
}

// ConfigMapHas expects a value in a ConfigMap. An empty namespace means the namespace of the scenario.
func ConfigMapHas(namespace, name, key, want string) Func {
	return func(ctx context.Context, e *Env) error {
		cm := &corev1.ConfigMap{}
		if err := e.Get(ctx, client.ObjectKey{Namespace: cmp.Or(namespace, e.Namespace), Name: name}, cm); err != nil {
			return err
		}
		if got := cm.Data[key]; got != want {
			return fmt.Errorf("%s is %q, not %q", key, got, want)
		}
		return nil
	}
}
