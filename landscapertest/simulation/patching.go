// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// handlePatch handles a patch of any type. stored is nil if the object does not exist.
func (s *Server) handlePatch(req *http.Request, r *resource, by *Request, stored object, body []byte) (object, int, error) {
	contentType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	if types.PatchType(contentType) == types.ApplyYAMLPatchType {
		return s.handleApply(req, r, by, stored, body)
	}
	if stored == nil {
		return nil, 0, apierrors.NewNotFound(r.groupResource(), by.Name)
	}
	patched, err := patchObject(r, types.PatchType(contentType), stored, body)
	if err != nil {
		return nil, 0, err
	}
	if keyOf(patched) != keyOf(stored) {
		return nil, 0, apierrors.NewBadRequest("the name and the namespace of an object cannot be changed")
	}
	if err := checkUID(r, stored, patched); err != nil {
		return nil, 0, err
	}
	return s.storeUpdate(req, r, by, stored, patched)
}

// checkUID returns an error if a patch changes the UID of an object. Unlike an update with another UID, such a patch is
// not a conflict.
func checkUID(r *resource, stored, patched object) error {
	if uid := patched.GetUID(); uid != "" && uid != stored.GetUID() {
		return apierrors.NewInvalid(r.GroupKind(), stored.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	return nil
}

// patchObject returns a copy of an object with a patch.
func patchObject(r *resource, patchType types.PatchType, stored object, body []byte) (object, error) {
	raw, err := stored.MarshalJSON()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch patchType {
	case types.MergePatchType:
		raw, err = jsonpatch.MergePatch(raw, body)
	case types.JSONPatchType:
		raw, err = applyJSONPatch(raw, body)
	case types.StrategicMergePatchType:
		typed, unknown := scheme.Scheme.New(r.GroupVersionKind)
		if unknown != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", r.groupResource(), stored.GetName(), "strategic merge patches are only for kinds of Kubernetes", 0, true)
		}
		raw, err = strategicpatch.StrategicMergePatch(raw, body, typed)
	default:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", r.groupResource(), stored.GetName(), string(patchType), 0, true)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	patched := &unstructured.Unstructured{}
	if err := patched.UnmarshalJSON(raw); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return patched, nil
}

// applyJSONPatch applies a patch according to RFC 6902.
func applyJSONPatch(raw, body []byte) ([]byte, error) {
	var patch jsonpatch.Patch
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	return patch.Apply(raw)
}

// handleApply handles a server-side apply.
func (s *Server) handleApply(req *http.Request, r *resource, by *Request, stored object, body []byte) (object, int, error) {
	applied := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(body, &applied.Object); err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	applied.SetNamespace(by.Namespace)
	if applied.GetName() != by.Name {
		return nil, 0, apierrors.NewBadRequest("the name in the URL differs from the name in the body")
	}
	live := stored
	if stored == nil {
		if applied.GetUID() != "" {
			return nil, 0, apierrors.NewConflict(r.groupResource(), by.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", applied.GetUID()))
		}
		live = newObject(r.GroupVersionKind)
		live.SetNamespace(by.Namespace)
		live.SetName(by.Name)
	} else if err := errors.Join(checkUID(r, stored, applied), checkPreconditions(r, stored, "", applied.GetResourceVersion())); err != nil {
		return nil, 0, err
	}
	force, _ := strconv.ParseBool(req.URL.Query().Get("force")) // the default is false
	merged, err := r.fields.Apply(live.DeepCopy(), applied, getManager(req), force)
	if err != nil {
		return nil, 0, err
	}
	obj, ok := merged.(*unstructured.Unstructured)
	switch {
	case !ok:
		return nil, 0, apierrors.NewInternalError(errOneVersion)
	case stored == nil && isDryRun(req.URL.Query()):
		return obj, http.StatusCreated, nil
	case stored == nil:
		obj, err = s.create(r, by, obj)
		return obj, http.StatusCreated, err
	}
	if isDryRun(req.URL.Query()) {
		s.keepFields(r, by.Subresource, stored, obj)
		return obj, http.StatusOK, nil
	}
	obj, err = s.update(r, by, stored, obj)
	return obj, http.StatusOK, err
}
