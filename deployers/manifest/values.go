// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// Getter reads objects of the item's targets, for exports.
type Getter interface {
	// Get reads an object of the target with a name, where "" means the item's own. It returns nil without an error if
	// the object does not exist, or if its kind is not known. It ignores the namespace of the reference for kinds that
	// have none.
	Get(ctx context.Context, targetName string, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error)
}

// Values is the result of reading exports.
type Values struct {
	// Values are the values of the exports that have one, nested by the parts of their keys.
	Values map[string]any
	// Waiting are the other exports, in the item's order. Nothing must be stored before it is empty.
	Waiting []Awaited
}

// Awaited is an export whose value does not exist yet.
type Awaited struct {
	// Key is the key of the export.
	Key string
	// Reason says what is missing, in one line and without values.
	Reason string
	// Timeout bounds the wait. Zero means no bound.
	Timeout time.Duration
}

// ReadExports reads the values of all exports. It reads every object once, as long as there are no more than 64. It
// does not wait. Exports without a value yet are in Waiting. The values are copies. ReadExports returns the errors of
// the getter, with the key, and the cause of the context, wrapped, if the context ends while a path is evaluated. It
// returns a ConfigError if a path takes too many steps in its object, if two exports want the same place and are not
// both objects, or if the values exceed what a Secret may hold. It never keeps more than that.
func ReadExports(ctx context.Context, exports []Export, get Getter) (*Values, error) {
	reader := reader{get: get, seen: map[object]*unstructured.Unstructured{}}
	out := &Values{Values: map[string]any{}}
	size := 0
	for i := range exports {
		export := &exports[i]
		value, missing, err := reader.value(ctx, export)
		if errors.Is(err, jsonpath.ErrLimit) {
			return nil, fault(fmt.Sprintf("exports.exports[%d]", i), "%s", err.Error())
		}
		if err != nil {
			return nil, fmt.Errorf("export %q: %w", export.Key, err)
		}
		if missing != "" {
			out.Waiting = append(out.Waiting, Awaited{Key: export.Key, Reason: missing, Timeout: export.Timeout})
			continue
		}
		if !merge(out.Values, nest(export.key, value)) {
			return nil, fault(fmt.Sprintf("exports.exports[%d].key", i), "%q is in the place of another export", export.Key)
		}
		if size += sizeOf(value); size > corev1.MaxSecretSize {
			if _, err := EncodeExports(out.Values); err != nil { // if it is nil, the merged values need less than their parts
				return nil, err
			}
		}
	}
	return out, nil
}

// sizeOf returns how much space a value takes in the Secret. A value that cannot be encoded takes none, and fails
// later.
func sizeOf(value any) int {
	raw, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(raw)
}

// EncodeExports returns the content of the export Secret, for deployerlib.WriteExport. The error is a ConfigError that
// names the largest value if the values exceed the 1 MiB that a Secret may hold.
func EncodeExports(values map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode exports: %w", err)
	}
	if len(raw) <= corev1.MaxSecretSize {
		return raw, nil
	}
	largest, size := "", 0
	for key, value := range values {
		part, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode exports: %w", err)
		}
		if len(part) > size || (len(part) == size && key < largest) {
			largest, size = key, len(part)
		}
	}
	return nil, deployerlib.ConfigError("spec.config.exports", "the values have %d bytes, more than the %d that a Secret can hold; the largest is %q with %d bytes",
		len(raw), corev1.MaxSecretSize, largest, size)
}

// object is an object that a reader has already read.
type object struct {
	target string
	ref    lsv1alpha1.TypedObjectReference
}

// maxObjects is how many objects a reader keeps. An item may name thousands, each as large as a cluster allows.
const maxObjects = 64

// reader reads every object once, except those that it could not keep.
type reader struct {
	get  Getter
	seen map[object]*unstructured.Unstructured
}

// value returns the value of an export, or says what is missing.
func (r *reader) value(ctx context.Context, export *Export) (value any, missing string, err error) {
	target := ""
	if export.TargetName != nil {
		target = *export.TargetName
	}
	value, missing, err = r.read(ctx, target, *export.FromResource, export.path)
	if export.FromObjectReference == nil || missing != "" || err != nil {
		return value, missing, err
	}
	into := lsv1alpha1.TypedObjectReference{APIVersion: export.FromObjectReference.APIVersion, Kind: export.FromObjectReference.Kind}
	fields, _ := value.(map[string]any)
	name, _ := fields["name"].(string)
	namespace, isText := fields["namespace"].(string)
	if name == "" || (!isText && fields["namespace"] != nil) {
		return nil, fmt.Sprintf("%s of %s is no reference to an object", export.path, describe(*export.FromResource)), nil
	}
	if namespace == "" {
		namespace = export.FromResource.Namespace
	}
	into.Name, into.Namespace = name, namespace
	return r.read(ctx, target, into, export.pathInto)
}

// read returns the first value of a path in an object. null counts as no value.
func (r *reader) read(ctx context.Context, target string, ref lsv1alpha1.TypedObjectReference, path *jsonpath.Path) (value any, missing string, err error) {
	id := object{target: target, ref: ref}
	obj, known := r.seen[id]
	if !known {
		if obj, err = r.get.Get(ctx, target, ref); err != nil {
			return nil, "", fmt.Errorf("get %s: %w", describe(ref), err)
		}
		if len(r.seen) >= maxObjects {
			clear(r.seen)
		}
		r.seen[id] = obj
	}
	if obj == nil {
		return nil, describe(ref) + " does not exist", nil
	}
	found, err := path.Find(ctx, obj.Object)
	if err != nil && !errors.Is(err, jsonpath.ErrNotFound) {
		return nil, "", fmt.Errorf("%s: %w", describe(ref), err)
	}
	if err != nil || found[0] == nil {
		return nil, fmt.Sprintf("%s of %s does not exist", path, describe(ref)), nil
	}
	return runtime.DeepCopyJSONValue(found[0]), "", nil
}

func describe(ref lsv1alpha1.TypedObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}

// nest puts a value under a dotted key.
func nest(key []string, value any) map[string]any {
	for i := len(key) - 1; i > 0; i-- {
		value = map[string]any{key[i]: value}
	}
	return map[string]any{key[0]: value}
}

// merge merges src into dst, recursively for objects. It returns false if two values have the same key and are not both
// objects.
func merge(dst, src map[string]any) bool {
	for key, value := range src {
		old, found := dst[key]
		if !found {
			dst[key] = value
			continue
		}
		oldFields, ok := old.(map[string]any)
		newFields, both := value.(map[string]any)
		if !ok || !both || !merge(oldFields, newFields) {
			return false
		}
	}
	return true
}
