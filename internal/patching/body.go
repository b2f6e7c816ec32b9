// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

const (
	fieldMetadata        = "metadata"
	fieldStatus          = "status"
	fieldResourceVersion = "resourceVersion"
	fieldUID             = "uid"
)

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

// ToBody returns the JSON body of an object. For an unstructured object, the body contains all explicit nulls. For a
// typed object, nulls are removed, because they only represent unset fields.
func ToBody(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return jsondiff.NormalizeObject(u.Object)
	}
	return Encode(obj)
}

// ToObject converts a body to an object of the same Go type as obj. The result has the TypeMeta of obj.
func ToObject(obj client.Object, body map[string]any) (client.Object, error) {
	out, err := newLike(obj)
	if err != nil {
		return nil, err
	}
	if u, ok := out.(*unstructured.Unstructured); ok {
		u.Object = jsondiff.DeepCopy(body)
		return u, nil
	}
	err = decodeInto(body, out)
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return out, err
}

// setBody replaces the content of obj by the content of a body.
func setBody(obj client.Object, body map[string]any) error {
	out, err := ToObject(obj, body)
	if err == nil {
		replace(obj, out)
	}
	return err
}

// replace replaces the content of obj by the content of another object of the same Go type.
func replace(obj, by client.Object) { reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(by).Elem()) }

// newLike returns an empty object of the same Go type as obj.
func newLike(obj client.Object) (client.Object, error) {
	fresh, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(obj).Elem()))
	if !ok {
		return nil, fmt.Errorf("%T is not an object", obj)
	}
	return fresh, nil
}

// checkKnown returns an error if the body has a field that the Go type of obj does not declare. Such a field would be
// lost silently.
func checkKnown(obj client.Object, body map[string]any) error {
	probe, err := newLike(obj)
	if _, raw := obj.(*unstructured.Unstructured); raw || err != nil {
		return err
	}
	data, err := json.Marshal(body)
	unknown := []error{}
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(data, probe, kjson.DisallowUnknownFields)
	}
	if err != nil || len(unknown) == 0 {
		return nil // decoding the body will report values of the wrong type
	}
	path := ""
	if field, ok := errors.AsType[kjson.FieldError](unknown[0]); ok {
		path = field.FieldPath()
	}
	return &jsondiff.FieldError{Path: path, Reason: fmt.Sprintf("%T has no such field", obj)}
}

// isNil reports whether the interface is nil or contains a nil pointer.
func isNil(obj client.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func getVersion(body map[string]any) string {
	version, _ := jsondiff.ObjectAt(body, fieldMetadata)[fieldResourceVersion].(string)
	return version
}

func hasMember(body map[string]any, key string) bool {
	_, exists := body[key]
	return exists
}

// filterPart returns a copy of a part of a body. The copy contains the status if `status` is true, and all other fields
// if `main` is true.
func filterPart(body map[string]any, main, status bool) map[string]any {
	out := map[string]any{}
	for key, value := range body {
		if key == fieldStatus && status || key != fieldStatus && main {
			out[key] = value
		}
	}
	return out
}

// equalPart compares a part of two bodies. The part is the status if `status` is true, and everything else otherwise.
func equalPart(a, b map[string]any, status bool) bool {
	return jsondiff.Equal(filterPart(a, !status, status), filterPart(b, !status, status))
}
