// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/internal/response"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

var (
	testOwner  = ownership.Owner{UID: "item", Landscape: "l", Namespace: "ns", Name: "n"}
	otherOwner = ownership.Owner{UID: "other", Landscape: "l", Namespace: "ns", Name: "other"}
)

// newManifest returns a ConfigMap that is ready to be sent. The default policy allows everything.
func newManifest(strategy string, changes ...func(*Manifest)) *Manifest {
	obj := newConfigMap("1")
	testOwner.Mark(obj)
	m := &Manifest{Ref: object.ToRef(obj), Object: obj, Strategy: FindStrategy(strategy), CanShare: true, ReleaseAdopted: true}
	for _, change := range changes {
		change(m)
	}
	m.Hash = m.Strategy.Hash(m.Object, m.PatchAfterDeployment)
	return m
}

// newConfigMap returns a ConfigMap with one value.
func newConfigMap(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "a"}, "data": map[string]any{"key": value},
	}}
}

// newEntry returns the entry of the ConfigMap. The hash is empty if the item has not written it yet.
func newEntry(uid types.UID, hash string) object.Entry {
	return object.Entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", UID: uid, Hash: hash}
}

func withCreateOnly(m *Manifest) { m.IsCreateOnly, m.CanShare = true, false }

func withSkipIfForeign(m *Manifest) { m.SkipIfForeign, m.CanShare = true, false }

func withUnchanged(m *Manifest) { m.Unchanged = true }

func withRejectUnowned(m *Manifest) { m.RejectUnowned = true }

// newRules returns the rules for the objects of me.
func newRules(changes ...func(*Rules)) *Rules {
	r := &Rules{Owner: testOwner, LandscaperLabel: landscaperLabel}
	for _, change := range changes {
		change(r)
	}
	return r
}

func withForce(r *Rules) { r.Force = true }

func withRecreate(r *Rules) { r.Recreate = true }

func withAskToCorrect(r *Rules) { r.MustAskToCorrect = true }

func withSharedKinds(r *Rules) { r.SharedKinds = []schema.GroupKind{{Kind: "ConfigMap"}} }

// liveMap returns the ConfigMap as the cluster returns it after the given field manager has written it.
func liveMap(uid types.UID, manager string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	live := newConfigMap("2")
	live.SetUID(uid)
	live.SetResourceVersion("1")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", Time: &metav1.Time{},
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`),
	}})
	if change != nil {
		change(live)
	}
	return live
}

// landscaperLabel is the label of Landscaper's manifest deployer.
const landscaperLabel = "manifest.deployer.landscaper.gardener.cloud/deployitem"

var errNotAllowed = errors.New("not allowed now")

var configMap = schema.GroupResource{Resource: "configmaps"}

func newConflictError(manager, path string) error {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: fmt.Sprintf("conflict with %q", manager), Field: path,
	}}, "conflict")
}

func newImmutableError() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable")})
}

func newDuplicateError() error {
	path := field.NewPath("items").Index(1).Child("name")
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Duplicate(path, "x")})
}

func newUIDError() error {
	err := apierrors.NewConflict(configMap, "a", fmt.Errorf("uid mismatch: the provided object specified uid x, and no existing object was found"))
	err.ErrStatus.Code = http.StatusConflict
	return err
}

// formatStep describes a step in one line, for comparison with the tables.
func formatStep(s Step) string {
	parts := []string{string(s.Effect)}
	if s.Effect == "" {
		parts = append(parts[:0], "end", string(s.Count))
		if s.Err != nil {
			parts = append(parts, getMessage(s.Err))
		}
	}
	if s.Force {
		parts = append(parts, "forced")
	}
	if s.DryRun {
		parts = append(parts, "dry")
	}
	if s.UID != "" {
		parts = append(parts, "of "+string(s.UID))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// getMessage returns the message of the API server about the first field, if there is one, or else the text of the
// error.
func getMessage(err error) string {
	for _, cause := range response.ListCauses(err) {
		return cause.Message
	}
	return err.Error()
}
