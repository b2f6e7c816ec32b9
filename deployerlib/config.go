// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lserrors "github.com/gardener/landscaper/apis/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/contract"
)

// NewConfigError returns an error about the item's configuration. If a deployer returns it, the job ends immediately
// with the code ERR_CONFIGURATION_PROBLEM. The parameter `path` is the path of the invalid field, such as
// "spec.config.replicas". The parameters `format` and `args` have the same meaning as in fmt.Errorf.
func NewConfigError(path, format string, args ...any) error {
	return lserrors.NewError("DecodeConfig", "InvalidConfiguration",
		contract.OneLine(path+": "+fmt.Sprintf(format, args...), maxConfigError), lsv1alpha1.ErrorConfigurationProblem)
}

// maxConfigError is the maximum length of the text of a configuration error, in bytes.
const maxConfigError = 1024

// configPath is the path of the provider configuration in an item.
const configPath = "spec.config"

// DecodeConfig decodes spec.config into a T. Decoding is strict: unknown and duplicate fields are errors, and field
// names are case-sensitive. apiVersion and kind are not checked, and T need not have fields for them. If the
// configuration is invalid, DecodeConfig returns an error of NewConfigError with the path of the field.
func DecodeConfig[T any](di *lsv1alpha1.DeployItem) (*T, error) {
	return DecodeConfigAs[T](di)
}

// DecodeConfigAs is like DecodeConfig, but returns an error if the configuration is not of one of the given kinds. If
// kinds is empty, every kind is accepted.
func DecodeConfigAs[T any](di *lsv1alpha1.DeployItem, kinds ...schema.GroupVersionKind) (*T, error) {
	if isConfigEmpty(di) {
		return nil, NewConfigError(configPath, "required, but missing or empty")
	}
	raw := di.Spec.Configuration.Raw
	if err := checkKind(raw, kinds); err != nil {
		return nil, err
	}
	body, err := withoutMeta[T](raw)
	if err != nil {
		return nil, err
	}
	config := new(T)
	strict, err := sigsjson.UnmarshalStrict(body, config)
	if err != nil {
		return nil, newTypeError(err)
	}
	if len(strict) > 0 {
		return nil, NewConfigError(configPath, "%s", strict[0].Error())
	}
	return config, nil
}

// newTypeError returns an error for a field whose value has the wrong type. The text of the error contains no Go types.
func newTypeError(err error) error {
	fault, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return NewConfigError(configPath, "%s", err.Error())
	}
	path := configPath
	if fault.Field != "" {
		path += "." + fault.Field
	}
	return NewConfigError(path, "is %s, must be %s", withArticle(fault.Value), getJSONType(fault.Type))
}

// withArticle adds the article "a" or "an" to the name that package json uses for a JSON type.
func withArticle(value string) string {
	switch value {
	case "object", "array":
		return "an " + value
	}
	return "a " + value
}

// getJSONType returns the JSON type from which a Go type is decoded.
func getJSONType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a bool"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that fits " + t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "of another type"
	}
}

// checkKind returns an error if apiVersion and kind are not among the allowed ones.
func checkKind(raw []byte, kinds []schema.GroupVersionKind) error {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return newTypeError(err)
	}
	if len(kinds) == 0 {
		return nil
	}
	for _, kind := range kinds {
		if meta.APIVersion == kind.GroupVersion().String() && meta.Kind == kind.Kind {
			return nil
		}
	}
	want := kinds[0]
	if meta.APIVersion == "" || meta.Kind == "" {
		return NewConfigError(configPath, "lacks apiVersion or kind, want %s %q", want.GroupVersion(), want.Kind)
	}
	return NewConfigError(configPath, "is %s %q, want %s %q", meta.APIVersion, meta.Kind, want.GroupVersion(), want.Kind)
}

// withoutMeta removes apiVersion and kind from the body if T does not declare them, because every embedded resource
// contains these two fields, and strict decoding would refuse them.
func withoutMeta[T any](raw []byte) ([]byte, error) {
	strict, err := sigsjson.UnmarshalStrict([]byte(`{"apiVersion":"","kind":""}`), new(T))
	if known := err == nil && len(strict) == 0; known {
		return raw, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, NewConfigError(configPath, "%s", err.Error())
	}
	// The variable `fields` does not show whether raw contains duplicate fields.
	if twice, err := sigsjson.UnmarshalStrict(raw, &map[string]any{}); err == nil && len(twice) > 0 {
		return nil, NewConfigError(configPath, "%s", twice[0].Error())
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return json.Marshal(fields)
}

// SetProviderStatus sets status.providerStatus to obj with the given apiVersion and kind, which every provider status
// must have. It changes di only in memory. The library writes the provider status with the outcome of the call, or at
// the next Checkpoint. The parameter `obj` may be any value that marshals to a JSON object. If obj is nil, the provider
// status is removed. SetProviderStatus returns an error if obj is not a JSON object or is larger than 1 MiB.
func SetProviderStatus(di *lsv1alpha1.DeployItem, obj any, gvk schema.GroupVersionKind) error {
	if obj == nil {
		di.Status.ProviderStatus = nil
		return nil
	}
	body, err := toMembers(obj)
	if err != nil {
		return err
	}
	if body["apiVersion"], err = json.Marshal(gvk.GroupVersion().String()); err != nil {
		return fmt.Errorf("encode apiVersion: %w", err)
	}
	if body["kind"], err = json.Marshal(gvk.Kind); err != nil {
		return fmt.Errorf("encode kind: %w", err)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode provider status: %w", err)
	}
	status := &runtime.RawExtension{Raw: raw}
	if err := contract.CheckProviderStatus(status); err != nil {
		return err
	}
	di.Status.ProviderStatus = status
	return nil
}

// toMembers returns the members of the JSON form of a provider status. If the status is already a map of encoded
// members, toMembers copies the map, because a status can be large and encoding it again takes long.
func toMembers(obj any) (map[string]json.RawMessage, error) {
	if members, ok := obj.(map[string]json.RawMessage); ok && members != nil {
		return maps.Clone(members), nil
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode provider status: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, fmt.Errorf("provider status of type %T is not a JSON object", obj)
	}
	return members, nil
}
