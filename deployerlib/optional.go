// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"
	"reflect"
)

// Unwrapper is implemented by a deployer that wraps another deployer. The wrapped deployer provides the optional
// interfaces that the wrapper does not implement, such as RuntimeUser and Resumer. A deployer that embeds another
// deployer does not need this method.
type Unwrapper interface {
	// Unwrap returns the wrapped deployer.
	Unwrap() Deployer
}

// maxWrapped is the maximum number of nested wrappers.
const maxWrapped = 16

// findOptional returns an implementation of the optional interface T. It is d itself, or the first wrapped deployer
// that implements T.
func findOptional[T any](d Deployer) (found T, ok bool) {
	for range maxWrapped {
		if found, ok = d.(T); ok {
			return found, true
		}
		if d = unwrapDeployer(d); d == nil {
			return found, false
		}
	}
	return found, false
}

// unwrapDeployer returns the deployer that d wraps, or nil if there is none.
func unwrapDeployer(d Deployer) Deployer {
	if wrapper, ok := d.(Unwrapper); ok {
		return wrapper.Unwrap()
	}
	for field, value := range getFields(d) {
		if !field.Anonymous || !field.IsExported() {
			continue
		}
		if inner, ok := reflect.TypeAssert[Deployer](value); ok && !isNilValue(value) {
			return inner
		}
	}
	return nil
}

// checkWrapped returns an error if a field of d contains a deployer that implements RuntimeUser, and the function
// `findOptional` does not find that deployer.
func checkWrapped(d Deployer) error {
	if _, ok := findOptional[RuntimeUser](d); ok {
		return nil
	}
	user, deployer := reflect.TypeFor[RuntimeUser](), reflect.TypeFor[Deployer]()
	for range maxWrapped {
		for field, value := range getFields(d) {
			if value.Kind() == reflect.Interface {
				value = value.Elem()
			}
			if value.IsValid() && value.Type().Implements(deployer) && value.Type().Implements(user) {
				return fmt.Errorf("the deployer %T contains a %s in its field %s, but UseRuntime of that deployer is never called: embed the field, or add a method Unwrap() deployerlib.Deployer",
					d, value.Type(), field.Name)
			}
		}
		if d = unwrapDeployer(d); d == nil {
			return nil
		}
	}
	return nil
}

// getFields returns the fields of a deployer that is a struct or a pointer to a struct.
func getFields(d Deployer) func(yield func(reflect.StructField, reflect.Value) bool) {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		value := reflect.ValueOf(d)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return
		}
		for i := range value.NumField() {
			if !yield(value.Type().Field(i), value.Field(i)) {
				return
			}
		}
	}
}

// isNilValue reports whether a value is a nil pointer or interface.
func isNilValue(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	default:
		return false
	}
}
