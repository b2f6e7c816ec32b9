// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha1 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// The versions of the provider status that Landscaper's manifest deployer has
// written. Ours is v1alpha2 with one more field.
var (
	statusV1alpha1 = manifestv1alpha1.SchemeGroupVersion.WithKind("ProviderStatus")
	statusV1alpha2 = manifestv1alpha2.SchemeGroupVersion.WithKind("ProviderStatus")
)

// The fields of a provider status.
const (
	statusPath     = "status.providerStatus"
	fieldManaged   = "managedResources"
	fieldInventory = "inventory"
)

// maxManaged bounds managedResources in our own status, in bytes of JSON. It
// only tells others what the inventory tells us, and the two share what an item
// can hold.
const maxManaged = 128 << 10

// Status is the provider status of an item.
type Status struct {
	// ManagedResources lists the objects that the item manages, for people and
	// for Landscaper's own manifest deployer. It is all that a status of the
	// latter has.
	ManagedResources managedresource.ManagedResourceStatusList
	// Inventory is the apply engine's own list as it wrote it. nil: the status
	// is not ours, or nothing was written yet.
	Inventory json.RawMessage

	// more are fields of a newer version of ours, which are kept.
	more map[string]json.RawMessage
}

// FromLandscaper tells whether Landscaper's own manifest deployer wrote the
// status: its objects are to be taken over.
func (s *Status) FromLandscaper() bool {
	return s.Inventory == nil && len(s.ManagedResources) > 0
}

// DecodeStatus reads the provider status of an item, ours or one of
// Landscaper's manifest deployer in version v1alpha1 or v1alpha2. Without one it
// gives an empty Status. Fields that it does not know are kept.
// Errors: a deployerlib.ConfigError when it is the status of something else.
func DecodeStatus(di *lsv1alpha1.DeployItem) (*Status, error) {
	status := &Status{more: map[string]json.RawMessage{}}
	if di.Status.ProviderStatus == nil || len(di.Status.ProviderStatus.Raw) == 0 {
		return status, nil
	}
	raw := di.Status.ProviderStatus.Raw
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, deployerlib.ConfigError(statusPath, "%s", err.Error())
	}
	if err := json.Unmarshal(raw, &status.more); err != nil {
		return nil, deployerlib.ConfigError(statusPath, "%s", err.Error())
	}
	if status.more == nil {
		return &Status{}, nil // null
	}
	var err error
	switch meta.GroupVersionKind() {
	case statusV1alpha1:
		status.ManagedResources, err = managedV1alpha1(status.more[fieldManaged])
	case statusV1alpha2:
		err = unmarshal(status.more[fieldManaged], &status.ManagedResources)
	default:
		return nil, deployerlib.ConfigError(statusPath, "is %s %q, want %s %q", meta.APIVersion, meta.Kind, statusV1alpha2.GroupVersion(), statusV1alpha2.Kind)
	}
	if err != nil {
		return nil, deployerlib.ConfigError(statusPath+"."+fieldManaged, "%s", err.Error())
	}
	if inventory := status.more[fieldInventory]; string(inventory) != "null" {
		status.Inventory = inventory
	}
	for _, field := range []string{"apiVersion", "kind", fieldManaged, fieldInventory} {
		delete(status.more, field)
	}
	return status, nil
}

// managedV1alpha1 reads the list of the older version: without policies, which
// it did not have.
func managedV1alpha1(raw json.RawMessage) (managedresource.ManagedResourceStatusList, error) {
	var refs []lsv1alpha1.TypedObjectReference
	if err := unmarshal(raw, &refs); err != nil {
		return nil, err
	}
	var list managedresource.ManagedResourceStatusList
	for _, ref := range refs {
		list = append(list, managedresource.ManagedResourceStatus{
			Policy:   managedresource.ManagePolicy,
			Resource: corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name},
		})
	}
	return list, nil
}

// unmarshal leaves out alone when there is nothing.
func unmarshal(raw json.RawMessage, out any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// SetStatus puts a status into the item, in memory, as v1alpha2: readable for
// Landscaper's own manifest deployer, which ignores the inventory.
// managedResources is left out, never cut, when it is larger than 128 KiB:
// some 900 objects.
// Errors: the inventory is no JSON, or the status exceeds 1 MiB (a ConfigError:
// refuse the item before anything is written to its target).
func SetStatus(di *lsv1alpha1.DeployItem, status *Status) error {
	body := maps.Clone(status.more)
	if body == nil {
		body = map[string]json.RawMessage{}
	}
	if len(status.ManagedResources) > 0 {
		managed, err := json.Marshal(status.ManagedResources)
		if err != nil {
			return fmt.Errorf("encode managed resources: %w", err)
		}
		if len(managed) <= maxManaged || status.Inventory == nil {
			body[fieldManaged] = managed
		}
	}
	if status.Inventory != nil {
		body[fieldInventory] = status.Inventory
	}
	return deployerlib.SetProviderStatus(di, body, statusV1alpha2)
}
