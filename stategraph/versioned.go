// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// ConfigData is a kind that only carries data, and may be made unchangeable.
type ConfigData interface {
	*corev1.ConfigMap | *corev1.Secret
	client.Object
}

// Versioned keeps a ConfigMap or Secret that is never changed (copy-on-write): the name ends in a hash of the content, and
// the object is immutable. Another content makes another object; those that require the component learn its name from
// Name, and so roll their Pods. The former object is deleted when the component and all that require it, directly or not,
// are ready with the new one, so that Pods that still use it go on working.
//
// The hash of a Secret's content is part of a name that more people may read than the Secret: do not keep what can be
// guessed, such as a short password alone, in it.
func Versioned[T ConfigData](body func(ctx context.Context) (T, error), opts ...Option) Resource {
	r := newObjects(opts, kindOf[T])
	if body == nil {
		r.faults = append(r.faults, "the body of Versioned is nil")
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		n, err := From(ctx)
		if err != nil {
			return nil, err
		}
		obj, err := bodyOf(ctx, body, r.scheme)
		if err != nil || obj == nil {
			return nil, err
		}
		if err := n.version(obj); err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{obj}, nil
	}
	return r
}

// version puts the hash of the content into the name, and makes the object immutable.
func (n *Node) version(obj *unstructured.Unstructured) error {
	content := map[string]any{}
	for _, field := range []string{"type", "data", "binaryData", "stringData"} {
		if value, found := obj.Object[field]; found {
			content[field] = value
		}
	}
	encoded, err := json.Marshal(content) // sorts the keys
	if err != nil {
		return fmt.Errorf("encode the content of %s: %w", apply.RefOf(obj), err)
	}
	base := obj.GetName()
	if base == "" {
		base = n.nameFor(strings.TrimSuffix(obj.GetGenerateName(), "-"))
		obj.SetGenerateName("")
	}
	obj.SetName(base + "-" + hash(string(encoded)))
	return unstructured.SetNestedField(obj.Object, true, "immutable")
}
