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

// These are the versions of the provider status that Landscaper's manifest deployer has written. This deployer writes
// v1alpha2 with one more field.
var (
	statusV1alpha1 = manifestv1alpha1.SchemeGroupVersion.WithKind("ProviderStatus")
	statusV1alpha2 = manifestv1alpha2.SchemeGroupVersion.WithKind("ProviderStatus")
)

// These are the fields of a provider status.
const (
	statusPath     = "status.providerStatus"
	fieldManaged   = "managedResources"
	fieldInventory = "inventory"
)

// maxManaged bounds managedResources in a status that this deployer writes, in bytes of JSON. The list repeats for
// others what the inventory contains, and the two share the space that an item has.
const maxManaged = 128 << 10

// Status is the provider status of an item.
type Status struct {
	// ManagedResources lists the objects that the item manages, for people and for Landscaper's own manifest deployer.
	// A status of that deployer contains nothing else.
	ManagedResources managedresource.ManagedResourceStatusList
	// Inventory is the apply engine's own list as it wrote it. It is nil if another deployer wrote the status, or if
	// nothing was written yet.
	Inventory json.RawMessage

	// more are fields of a newer version of this deployer, which are kept.
	more map[string]json.RawMessage
}

// FromLandscaper reports whether Landscaper's own manifest deployer wrote the status, so that its objects are to be
// taken over.
func (s *Status) FromLandscaper() bool {
	return s.Inventory == nil && len(s.ManagedResources) > 0
}

// DecodeStatus reads the provider status of an item. This deployer or Landscaper's manifest deployer has written it,
// the latter in version v1alpha1 or v1alpha2. If there is none, DecodeStatus returns an empty Status. It keeps fields
// that it does not know. It returns a deployerlib.ConfigError if the status belongs to something else.
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
		return &Status{}, nil // the status is null
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

// managedV1alpha1 reads the list of the older version, which had no policies.
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

// unmarshal does not change out if there is nothing to read.
func unmarshal(raw json.RawMessage, out any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// SetStatus writes a status to the item, in memory, as v1alpha2. Landscaper's own manifest deployer can read it, and
// ignores the inventory. If managedResources is larger than 128 KiB, which is some 900 objects, it is left out, but
// never cut. SetStatus returns an error if the inventory is no JSON, or if the status exceeds 1 MiB. The latter is a
// ConfigError, so that the item is refused before anything is written to its target.
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
