// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// getter reads an object. If the name of the target is empty, it reads the object from the item's own target. It
// returns nil and no error if the object does not exist or its kind is unknown. It ignores the namespace of the
// reference if the kind is cluster-scoped.
type getter func(ctx context.Context, targetName string, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error)

// missingExport is an export whose value does not exist yet.
type missingExport struct {
	key     string
	reason  string        // one line that names what is missing
	timeout time.Duration // limits the wait; zero means no limit
	done    *Export       // the export, if the object is done and no longer exists, so that waiting is useless
}

// readExports reads the values of all exports and returns copies of them. The key of an export becomes a path:
// database.url becomes {database: {url: …}}. readExports does not wait: the result `waiting` contains the exports that
// have no value yet, in the order of the item's configuration. The values must not be stored before this list is empty.
// If the exports refer to at most 64 objects, readExports reads each object only once. The values for exports without
// fromResource are in document.
//
// readExports returns the errors of the function `get`, with the key of the export. If ctx ends while a path is
// evaluated, the error wraps the cause. It returns an error of NewConfigError in the following cases:
//
//   - A path causes too much work.
//   - The value of an export without fromResource is missing in `document`.
//   - Two exports have the same key, and their values are not both objects.
//   - The values do not fit into a Secret. In this case, readExports does not read the remaining values.
func readExports(ctx context.Context, exports []Export, get getter, document map[string]any) (values map[string]any, waiting []missingExport, err error) {
	reader := exportReader{get: get, document: document, objects: map[objectID]*unstructured.Unstructured{}}
	values = map[string]any{}
	size := 0
	for i := range exports {
		export := &exports[i]
		value, missing, err := reader.readValue(ctx, export)
		awaits, err := export.getMissing(missing, err)
		if err != nil {
			return nil, nil, err
		}
		if awaits != nil {
			waiting = append(waiting, *awaits)
			continue
		}
		if !merge(values, setNested(export.key, value)) {
			return nil, nil, newConfigError(export.configPath+".key", "%q conflicts with the key of another export", export.Key)
		}
		raw, _ := json.Marshal(value) // if the value cannot be encoded, deployerlib.WriteExport returns an error later
		if size += len(raw); size > corev1.MaxSecretSize {
			return nil, nil, newConfigError(export.configPath, "%q and the values before it have %d bytes, more than the %d that a Secret can hold",
				export.Key, size, corev1.MaxSecretSize)
		}
	}
	return values, waiting, nil
}

// getMissing returns what an export waits for, or nil if its value was read. The parameters are the results of
// reader.readValue.
func (e *Export) getMissing(missing string, err error) (*missingExport, error) {
	switch {
	case errors.Is(err, readiness.ErrFinished):
		return &missingExport{key: e.Key, reason: err.Error(), done: e}, nil
	case errors.Is(err, jsonpath.ErrLimit):
		return nil, newConfigError(e.configPath, "%s", err.Error())
	case err != nil:
		return nil, fmt.Errorf("export %q: %w", e.Key, err)
	case missing != "" && e.FromResource == nil:
		return nil, newConfigError(e.configPath+".jsonPath", "%s", missing) // the values of the deployer do not change while the item waits
	case missing != "":
		return &missingExport{key: e.Key, reason: missing, timeout: e.Timeout}, nil
	}
	return nil, nil
}

// objectID identifies an object in one of the targets.
type objectID struct {
	target string
	ref    lsv1alpha1.TypedObjectReference
}

// maxObjects is the maximum number of objects that a reader stores. The limit is necessary, because an item may refer
// to thousands of large objects.
const maxObjects = 64

// exportReader reads each object only once, as long as it can store all of them.
type exportReader struct {
	get      getter
	document map[string]any
	objects  map[objectID]*unstructured.Unstructured
}

// readValue returns the value of an export. If there is no value, it returns text that explains why.
func (r *exportReader) readValue(ctx context.Context, export *Export) (stored any, missing string, err error) {
	if export.FromResource == nil {
		return findFirst(ctx, r.document, export.path, "the values of the deployer")
	}
	target := ptr.Deref(export.TargetName, "")
	stored, missing, err = r.readPath(ctx, target, *export.FromResource, export.path)
	if export.FromObjectReference == nil || missing != "" || err != nil {
		return stored, missing, err
	}
	into := lsv1alpha1.TypedObjectReference{APIVersion: export.FromObjectReference.APIVersion, Kind: export.FromObjectReference.Kind}
	fields, _ := stored.(map[string]any)
	name, _ := fields["name"].(string)
	namespace, isText := fields["namespace"].(string)
	if name == "" || (!isText && fields["namespace"] != nil) {
		return nil, fmt.Sprintf("%s of %s is not a reference to an object", export.path, formatObject(*export.FromResource)), nil
	}
	into.Name, into.Namespace = name, cmp.Or(namespace, export.FromResource.Namespace)
	return r.readPath(ctx, target, into, export.pathInto)
}

// readPath returns the first value at a path in an object of a target. If there is no value, it returns text that
// explains why.
func (r *exportReader) readPath(ctx context.Context, target string, ref lsv1alpha1.TypedObjectReference, path *jsonpath.Path) (value any, missing string, err error) {
	id := objectID{target: target, ref: ref}
	obj, known := r.objects[id]
	if !known {
		if obj, err = r.get(ctx, target, ref); errors.Is(err, readiness.ErrFinished) {
			return nil, "", fmt.Errorf("%s %w", formatObject(ref), err)
		}
		if err != nil {
			return nil, "", fmt.Errorf("get %s: %w", formatObject(ref), err)
		}
		if len(r.objects) >= maxObjects {
			clear(r.objects)
		}
		r.objects[id] = obj
	}
	if obj == nil {
		return nil, formatObject(ref) + " does not exist", nil
	}
	return findFirst(ctx, obj.Object, path, formatObject(ref))
}

// findFirst returns a copy of the first value at a path. If there is no value, or if it is null, findFirst returns text
// that names the missing field. Errors describe the object as what.
func findFirst(ctx context.Context, object map[string]any, path *jsonpath.Path, what string) (value any, missing string, err error) {
	found, err := path.Find(ctx, object)
	if err != nil && !errors.Is(err, jsonpath.ErrNotFound) {
		return nil, "", fmt.Errorf("%s: %w", what, err)
	}
	if err != nil || found[0] == nil {
		return nil, fmt.Sprintf("%s of %s does not exist", path, what), nil
	}
	return runtime.DeepCopyJSONValue(found[0]), "", nil
}

func formatObject(ref lsv1alpha1.TypedObjectReference) string {
	if ref.Namespace == "" {
		return ref.Kind + " " + ref.Name
	}
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}

// setNested returns an object with the value at the path that the key describes.
func setNested(key []string, value any) map[string]any {
	for i := len(key) - 1; i > 0; i-- {
		value = map[string]any{key[i]: value}
	}
	return map[string]any{key[0]: value}
}

// merge merges src into dst. It merges objects recursively. It returns false if two values have the same key and are
// not both objects.
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
