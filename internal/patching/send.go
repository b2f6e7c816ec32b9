// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// errChanged is the reason in a conflict that this package, and not the API server, has detected.
var errChanged = errors.New("the object has been modified")

// Call describes one write.
type Call struct {
	// Subresource is "status" or empty.
	Subresource string
	// Type is the content type of a patch. It is empty for an update.
	Type types.PatchType
	// Bytes is the size of the patch. It is 0 for an update.
	Bytes int
	// Err is the error of the API server, or nil if it accepted the write.
	Err error
}

// target identifies the object to write, and contains the clients that read and write it.
type target struct {
	client client.Client
	reader client.Reader
	kind   schema.GroupVersionKind
	key    client.ObjectKey
}

// write contains one patch. It also contains a function that makes the same change to the stored body, in case patches
// are forbidden.
type write struct {
	subresource string
	contentType types.PatchType
	data        []byte
	version     string // the version that the patch may change, or "" for any version
	change      func(stored map[string]any) map[string]any
}

// send patches the object. If only updates are allowed, it updates the object. It stores the response in `answer`.
func (t target) send(ctx context.Context, w write, answer client.Object, result *Result) error {
	ban := newPatchForbidden(t.client, t.kind, w.subresource)
	if _, known := patchForbiddenCache.Get(ban); known {
		err := t.update(ctx, w, answer, result)
		if !isMissingRight(err, "update") {
			return wrapSizeError(err)
		}
		patchForbiddenCache.Remove(ban)
	}
	refused := t.patch(ctx, w, answer, result)
	if !isMissingRight(refused, "patch") {
		return wrapSizeError(refused)
	}
	err := t.update(ctx, w, answer, result)
	if isMissingRight(err, "update") || isMissingRight(err, "get") {
		resource := t.kind.Kind
		if w.subresource != "" {
			resource += "/" + w.subresource
		}
		return &RightsError{Resource: resource, Err: refused}
	}
	patchForbiddenCache.Add(ban, nil)
	return wrapSizeError(err)
}

func (t target) patch(ctx context.Context, w write, answer client.Object, result *Result) error {
	var err error
	if p := client.RawPatch(w.contentType, w.data); w.subresource == "" {
		err = t.client.Patch(ctx, answer, p)
	} else {
		err = t.client.SubResource(w.subresource).Patch(ctx, answer, p)
	}
	result.recordCall(w, w.contentType, len(w.data), err)
	return err
}

// update reads the object, applies the change and sends an update. It uses an unstructured object, so that fields that
// a Go type does not declare are not lost.
func (t target) update(ctx context.Context, w write, answer client.Object, result *Result) error {
	raw := t.raw()
	result.Reads++
	if err := t.reader.Get(ctx, t.key, raw); err != nil {
		return err
	}
	if w.version != "" && raw.GetResourceVersion() != w.version {
		return apierrors.NewConflict(schema.GroupResource{Group: t.kind.Group, Resource: t.kind.Kind}, t.key.Name, errChanged)
	}
	version := raw.GetResourceVersion()
	raw.Object = jsondiff.DeepCopy(w.change(raw.Object))
	raw.SetResourceVersion(version)
	var err error
	if w.subresource == "" {
		err = t.client.Update(ctx, raw)
	} else {
		err = t.client.SubResource(w.subresource).Update(ctx, raw)
	}
	result.recordCall(w, "", 0, err)
	if err != nil {
		return err
	}
	return setBody(answer, raw.Object)
}

// Write sends a merge patch for obj to the given subresource. If `subresource` is empty, it sends the patch to the main
// resource. If the stored object does not have the given version, Write returns a conflict. The response replaces the
// content of obj. If the write fails, Write does not change obj.
func Write(ctx context.Context, c client.Client, obj client.Object, subresource, version string, change map[string]any) error {
	to := target{client: c, reader: c, key: client.ObjectKeyFromObject(obj)}
	var err error
	if to.kind, err = c.GroupVersionKindFor(obj); err != nil {
		return fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	w := write{
		subresource: subresource, contentType: types.MergePatchType, version: version,
		change: func(stored map[string]any) map[string]any { return jsondiff.ApplyMergePatch(stored, change) },
	}
	if w.data, err = json.Marshal(bind(change, fieldResourceVersion, version)); err != nil {
		return fmt.Errorf("encode patch of %s: %w", to.key, err)
	}
	// Decoding into obj itself would keep map entries and fields that are not in the response.
	answer, err := newLike(obj)
	if err != nil {
		return err
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	answer.GetObjectKind().SetGroupVersionKind(kind)
	answer.SetNamespace(to.key.Namespace)
	answer.SetName(to.key.Name)
	if err := to.send(ctx, w, answer, &Result{}); err != nil {
		return fmt.Errorf("patch %s of %T %s: %w", cmp.Or(subresource, fieldMetadata), obj, to.key, err)
	}
	answer.GetObjectKind().SetGroupVersionKind(kind)
	replace(obj, answer)
	return nil
}

// raw returns an unstructured object that has only the kind and the name of the target.
func (t target) raw() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(t.kind)
	u.SetNamespace(t.key.Namespace)
	u.SetName(t.key.Name)
	return u
}

// isMissingRight reports whether err means that the client lacks the right for the verb. If an admission plugin has
// rejected the request, the API server also returns "forbidden". In that case, isMissingRight returns false, because a
// request with another verb would be rejected as well.
func isMissingRight(err error, verb string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), fmt.Sprintf("cannot %s resource", verb))
}

// isReleased reports whether an object is terminating and has no finalizers.
func isReleased(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
}

// isGraceful reports whether a terminating object has a grace period, during which it remains even without finalizers,
// as pods do.
func isGraceful(obj client.Object) bool {
	seconds := obj.GetDeletionGracePeriodSeconds()
	return seconds != nil && *seconds > 0
}
