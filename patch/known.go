// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// checkKnown refuses fields that the Go type of obj does not have: they would be lost without a word.
func checkKnown(obj client.Object, body map[string]any) error {
	if _, any := obj.(*unstructured.Unstructured); any {
		return nil
	}
	probe, err := newLike(obj)
	if err != nil {
		return err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return errors.New("the body cannot be expressed in JSON")
	}
	unknown, err := kjson.UnmarshalStrict(data, probe, kjson.DisallowUnknownFields)
	if err != nil || len(unknown) == 0 {
		return nil // a value of another type is told by whoever decodes
	}
	path := ""
	if field, ok := errors.AsType[kjson.FieldError](unknown[0]); ok {
		path = field.FieldPath()
	}
	return &FieldError{Path: path, Reason: fmt.Sprintf("%T has no such field", obj)}
}
