// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"reflect"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldMetadata        = "metadata"
	fieldStatus          = "status"
	fieldResourceVersion = "resourceVersion"
)

// toBodies returns the JSON bodies of two versions of one object. The spec of two DeployItems that are
// equal in memory is left out on both sides: it can be a megabyte, and nobody needs it here.
func toBodies(base, wanted client.Object) (map[string]any, map[string]any, error) {
	if b, ok := base.(*lsv1alpha1.DeployItem); ok {
		if w, ok := wanted.(*lsv1alpha1.DeployItem); ok && reflect.DeepEqual(b.Spec, w.Spec) {
			base, wanted = withoutSpec(b), withoutSpec(w)
		}
	}
	baseBody, err := toBody(base)
	if err != nil {
		return nil, nil, err
	}
	wantedBody, err := toBody(wanted)
	return baseBody, wantedBody, err
}

func withoutSpec(item *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{TypeMeta: item.TypeMeta, ObjectMeta: item.ObjectMeta, Status: item.Status}
}

// toBody returns the JSON body of an object, without explicit nulls inside objects.
func toBody(obj client.Object) (map[string]any, error) {
	var source any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		source = u.Object
	}
	data, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("encode object %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	body, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode object %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	dropNulls(body)
	return body, nil
}

func decode(data []byte) (map[string]any, error) {
	body := map[string]any{}
	if err := utiljson.Unmarshal(data, &body); err != nil {
		return nil, err
	}
	if body == nil {
		body = map[string]any{}
	}
	return body, nil
}

// dropNulls removes the keys with a null from all objects below value, in place. Null items of lists
// stay, they count.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil {
				delete(v, key)
				continue
			}
			dropNulls(member)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

// object returns the member of body as an object, nil if it is absent or something else.
func object(body map[string]any, key string) map[string]any {
	member, _ := body[key].(map[string]any)
	return member
}
