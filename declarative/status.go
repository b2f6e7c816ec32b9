// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// StatusGVK is the default for the apiVersion and kind of the status that a handler returns.
var StatusGVK = schema.GroupVersionKind{Group: "declarative.deployerkit.dev", Version: "v1alpha1", Kind: "ProviderStatus"}

// ReservedField is the field of a provider status that is reserved for the library. A handler must not set it.
const ReservedField = "deployerkit"

const (
	statusPath      = "status.providerStatus"
	fieldGeneration = "observedGeneration"
	fieldInventory  = "inventory"
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
)

// providerStatus is the decoded provider status of an item. The method `store` writes it to the item.
type providerStatus struct {
	// handler contains the fields of the handler's own object, with apiVersion, kind and observedGeneration. It is nil
	// if there is none yet.
	handler map[string]json.RawMessage
	// inventory is the inventory of the apply engine.
	inventory apply.Inventory

	more map[string]json.RawMessage // further fields, including fields that a newer version of this library stored
}

// decodeStatus decodes the provider status of an item. If the item has none, decodeStatus returns an empty status. It
// returns an error of deployerlib.NewConfigError if the status is not an object, or if the library's part of the status
// cannot be read.
func decodeStatus(raw *runtime.RawExtension) (*providerStatus, error) {
	s := &providerStatus{}
	if raw == nil || len(raw.Raw) == 0 {
		return s, nil
	}
	body := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw.Raw, &body); err != nil {
		return nil, deployerlib.NewConfigError(statusPath, "is not an object: %s", err.Error())
	}
	if own, found := body[ReservedField]; found {
		if err := json.Unmarshal(own, &s.more); err != nil {
			return nil, deployerlib.NewConfigError(statusPath+"."+ReservedField, "is not an object: %s", err.Error())
		}
		if inventory, found := s.more[fieldInventory]; found {
			if err := json.Unmarshal(inventory, &s.inventory); err != nil {
				return nil, deployerlib.NewConfigError(statusPath+"."+ReservedField+"."+fieldInventory, "%s", err.Error())
			}
		}
		delete(s.more, fieldInventory)
		delete(body, ReservedField)
	}
	if !isOnlyFilledIn(body) {
		s.handler = body
	}
	return s, nil
}

// isOnlyFilledIn reports whether a status contains only fields that the method `store` adds. The handler returned no
// status in this case.
func isOnlyFilledIn(body map[string]json.RawMessage) bool {
	var kind metav1.TypeMeta
	_ = json.Unmarshal(body[fieldAPIVersion], &kind.APIVersion) // if a value is not a string, it comes from the handler
	_ = json.Unmarshal(body[fieldKind], &kind.Kind)
	return len(body) == 0 || len(body) == 2 && kind.GroupVersionKind() == StatusGVK
}

// set replaces the handler's part of the status. If `status` is nil, this part does not change. The method returns a
// deployerlib.NewConfigError if `status` does not marshal to a JSON object or contains the reserved field.
func (s *providerStatus) set(status any, generation int64) error {
	body, err := statusObject(status)
	if err != nil || body == nil {
		return err
	}
	body[fieldGeneration] = strconv.AppendInt(nil, generation, 10)
	fillIn(body)
	s.handler = body
	return nil
}

// last returns the handler's own object as JSON, or nil if there is none yet.
func (s *providerStatus) last() (json.RawMessage, error) {
	if s.handler == nil {
		return nil, nil
	}
	return json.Marshal(s.handler)
}

// EncodeStatus returns the provider status that the library stores if a handler returns the given
// [SyncResponse].Status. It omits the fields that belong to the library. It returns nil if `status` is nil, and an
// error if `status` does not marshal to a JSON object, contains the reserved field, or is too large. Most handlers need
// EncodeStatus only in tests.
func EncodeStatus(item *lsv1alpha1.DeployItem, status any) (json.RawMessage, error) {
	s := &providerStatus{}
	if err := s.set(status, item.Generation); err != nil {
		return nil, err
	}
	if err := s.store(&lsv1alpha1.DeployItem{}); err != nil {
		return nil, err
	}
	return s.last()
}

// store writes the provider status to the item in memory. It does not change the item if there is nothing to store. It
// also leaves the item unchanged, and returns an error, if the status is too large or if the apiVersion, kind or
// metadata in the handler's status cannot be stored.
func (s *providerStatus) store(item *lsv1alpha1.DeployItem) error {
	body, err := s.toFields()
	if err != nil {
		return err
	}
	if len(body) == 0 && item.Status.ProviderStatus == nil {
		return nil
	}
	fillIn(body)
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	status := &runtime.RawExtension{Raw: raw}
	if err := contract.CheckProviderStatus(status); err != nil {
		return err
	}
	if old := item.Status.ProviderStatus; old != nil && bytes.Equal(old.Raw, raw) {
		return nil
	}
	item.Status.ProviderStatus = status
	return nil
}

// toFields returns the fields of the provider status, without the fields that the function `fillIn` adds.
func (s *providerStatus) toFields() (map[string]json.RawMessage, error) {
	body, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	maps.Copy(body, s.handler)
	maps.Copy(own, s.more)
	var err error
	if len(s.inventory.Entries)+len(s.inventory.Former) > 0 || s.inventory.Empty {
		if own[fieldInventory], err = json.Marshal(s.inventory); err != nil {
			return nil, err
		}
	}
	if len(own) > 0 {
		body[ReservedField], err = json.Marshal(own)
	}
	return body, err
}

// statusObject marshals a handler's status to a JSON object. It returns nil if there is no status.
func statusObject(status any) (map[string]json.RawMessage, error) {
	if status == nil {
		return nil, nil
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, deployerlib.NewConfigError(statusPath, "the handler's status of type %T cannot be encoded: %s", status, err.Error())
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, nil
	}
	body := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, deployerlib.NewConfigError(statusPath, "the handler's status of type %T is not a JSON object", status)
	}
	if _, found := body[ReservedField]; found {
		return nil, deployerlib.NewConfigError(statusPath+"."+ReservedField, "is reserved for the library and must not be set in the handler's status")
	}
	return body, nil
}

// fillIn sets apiVersion and kind if they are missing.
func fillIn(body map[string]json.RawMessage) {
	for field, value := range map[string]string{fieldAPIVersion: StatusGVK.GroupVersion().String(), fieldKind: StatusGVK.Kind} {
		if old := string(body[field]); old == "" || old == `""` || old == "null" {
			body[field], _ = json.Marshal(value) // a string can always be encoded
		}
	}
}
