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

// seenBody returns the body of an object as functions get it. typed: it comes from a Go type. An
// unstructured one keeps its explicit nulls; a Go type's are only unset fields.
func seenBody(obj client.Object) (body map[string]any, typed bool, err error) {
	if isNil(obj) {
		return nil, false, errNoReference
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		body, err = normal(u.Object)
		return body, false, err
	}
	body, err = encodeFrom(obj)
	return body, true, err
}

// setBody makes obj what body says; all else in it is forgotten. A typed object keeps its TypeMeta.
func setBody(obj client.Object, body map[string]any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object, _ = cloneValue(body).(map[string]any)
		return nil
	}
	fresh, err := newLike(obj)
	if err != nil {
		return err
	}
	if err := decodeInto(body, fresh); err != nil {
		return err
	}
	fresh.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

// newLike returns an empty object of the same Go type.
func newLike(obj client.Object) (client.Object, error) {
	fresh, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(obj).Elem()))
	if !ok {
		return nil, fmt.Errorf("%T is no object", obj)
	}
	return fresh, nil
}

func versionOf(body map[string]any) string {
	version, _ := object(body, fieldMetadata)[fieldResourceVersion].(string)
	return version
}

func hasMember(body map[string]any, key string) bool {
	_, exists := body[key]
	return exists
}

func withoutStatus(body map[string]any) map[string]any { return part(body, true, false) }

// part returns a copy with the status only, all but the status, or everything.
func part(body map[string]any, main, status bool) map[string]any {
	out := map[string]any{}
	for key, member := range body {
		if key == fieldStatus && status || key != fieldStatus && main {
			out[key] = member
		}
	}
	return out
}
