// SPDX-License-Identifier: Apache-2.0

package declarative

import "reflect"

// ValueOr returns the existing value or, if that value is empty, the result of the function `generate`. A value is
// empty if it is the zero value, or a slice or map without elements. Use ValueOr for values that must be generated once
// and must not change afterwards, such as passwords and timestamps. Read the existing value from an observed child:
//
//	secret, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", req.Name("login"))
//	password, err := declarative.ValueOr(secret.Data["password"], newPassword)
//
// If the function `generate` fails, ValueOr returns its error.
func ValueOr[T any](existing T, generate func() (T, error)) (T, error) {
	if !isEmpty(reflect.ValueOf(&existing).Elem()) {
		return existing, nil
	}
	return generate()
}

func isEmpty(v reflect.Value) bool {
	if kind := v.Kind(); kind == reflect.Slice || kind == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}
