// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"
)

// readImports reads the values of the imports. For a Target import, the value is the complete Target object.
func (i *installer) readImports(ctx context.Context) (map[string]any, error) {
	imports := map[string]any{}
	for _, one := range i.in.Spec.Imports.Targets {
		target := &lsv1alpha1.Target{}
		if err := i.ls.client.Get(ctx, types.NamespacedName{Namespace: i.in.Namespace, Name: one.Target}, target); err != nil {
			return nil, fmt.Errorf("import %s: get Target %q: %w", one.Name, one.Target, err)
		}
		raw, err := json.Marshal(target)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", one.Name, err)
		}
		if imports[one.Name], err = decodeValue(raw); err != nil {
			return nil, fmt.Errorf("import %s: %w", one.Name, err)
		}
	}
	for _, one := range i.in.Spec.Imports.Data {
		raw, err := i.readDataImport(ctx, one)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", one.Name, err)
		}
		if imports[one.Name], err = decodeValue(raw); err != nil {
			return nil, fmt.Errorf("import %s: %w", one.Name, err)
		}
	}
	return imports, nil
}

// readDataImport returns an imported value as YAML.
func (i *installer) readDataImport(ctx context.Context, one lsv1alpha1.DataImport) ([]byte, error) {
	switch {
	case one.SecretRef != nil:
		secret := &corev1.Secret{}
		err := i.ls.client.Get(ctx, types.NamespacedName{Namespace: i.in.Namespace, Name: one.SecretRef.Name}, secret)
		return secret.Data[one.SecretRef.Key], err
	case one.ConfigMapRef != nil:
		configMap := &corev1.ConfigMap{}
		err := i.ls.client.Get(ctx, types.NamespacedName{Namespace: i.in.Namespace, Name: one.ConfigMapRef.Name}, configMap)
		return []byte(configMap.Data[one.ConfigMapRef.Key]), err
	}
	object := &lsv1alpha1.DataObject{}
	err := i.ls.client.Get(ctx, types.NamespacedName{Namespace: i.in.Namespace, Name: one.DataRef}, object)
	return object.Data.RawMessage, err
}

// decodeValue decodes a value in JSON or YAML.
func decodeValue(raw []byte) (value any, err error) {
	err = yaml.Unmarshal(raw, &value)
	return value, err
}

// writeExports writes the exports of an Installation to DataObjects.
func (i *installer) writeExports(ctx context.Context, exports map[string]json.RawMessage) error {
	for _, one := range i.in.Spec.Exports.Data {
		value, ok := exports[one.Name]
		if !ok {
			return fmt.Errorf("the blueprint does not export %q", one.Name)
		}
		object := &lsv1alpha1.DataObject{ObjectMeta: metav1.ObjectMeta{Namespace: i.in.Namespace, Name: one.DataRef}}
		_, err := controllerutil.CreateOrUpdate(ctx, i.ls.client, object, func() error {
			object.Data = lsv1alpha1.NewAnyJSON(value)
			return nil
		})
		if err != nil {
			return fmt.Errorf("write DataObject %s: %w", one.DataRef, err)
		}
	}
	return nil
}
