// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// ReadConfig reads a deployer's configuration file (YAML or JSON) of the given
// apiVersion and kind. Without a path it returns nil. Decoding is strict: a
// field that T does not know or that is there twice is an error.
func ReadConfig[T any](path string, kind schema.GroupVersionKind) (*T, error) {
	if path == "" {
		return nil, nil
	}
	body, err := os.ReadFile(path) //nolint:gosec // the operator says which file
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(body, &meta); err != nil {
		return nil, fmt.Errorf("decode configuration %s: %w", path, err)
	}
	if meta.GroupVersionKind() != kind {
		return nil, fmt.Errorf("configuration %s: is %s %q, want %s %q", path, meta.APIVersion, meta.Kind, kind.GroupVersion(), kind.Kind)
	}
	config := new(T)
	if err := yaml.UnmarshalStrict(body, config); err != nil {
		return nil, fmt.Errorf("decode configuration %s: %w", path, err)
	}
	return config, nil
}
