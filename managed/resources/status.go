// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// The fields of a provider status.
const (
	statusPath     = "status.providerStatus"
	fieldManaged   = "managedResources"
	fieldInventory = "inventory"
	fieldDigest    = "managedDigest"
)

const (
	// maxManaged is the maximum size of managedResources in a status, encoded as JSON. This list contains the references,
	// UIDs and policies of the objects, for Landscaper's deployer and for Decode. It must fit into the provider status
	// together with the inventory.
	maxManaged = 128 << 10
	// maxInventory is the maximum size of an inventory. It leaves space for the other fields of the provider status,
	// which may have up to 1 MiB in all.
	maxInventory = 1<<20 - maxManaged - 16<<10
)

// StatusFormat reads and writes the provider status of a deployer. The status has the same form as that of Landscaper's
// manifest and Helm deployers, with an additional field for the inventory. A deployer that uses StatusFormat can
// therefore take over items from Landscaper's own deployer, and vice versa.
type StatusFormat struct {
	// Kind is the apiVersion and kind of the provider status.
	Kind schema.GroupVersionKind
	// Former are earlier kinds of the provider status, which Decode also accepts.
	Former []schema.GroupVersionKind
}

// Status is a decoded provider status.
type Status struct {
	// Inventory is the inventory of the apply engine. If Landscaper's own deployer wrote the status, Decode creates the
	// inventory from the list of managed resources. The apply engine then takes over these objects, and deletes the
	// objects that the item no longer contains.
	Inventory apply.Inventory
	// Fields contains all fields of the status except apiVersion, kind, managedResources, managedDigest and inventory.
	// The deployer may add its own fields. Fields that a newer version of the deployer wrote are kept, because Store
	// writes all Fields back. After Decode, Fields is not nil.
	Fields map[string]json.RawMessage
}

// managedEntry is an element of managedResources. It also accepts the form of older versions of Landscaper's deployers,
// in which an element was only a reference.
type managedEntry struct {
	managedresource.ManagedResourceStatus `json:",inline"`
	lsv1alpha1.TypedObjectReference       `json:",inline"`
}

// Decode decodes the provider status of an item. If the item has no provider status, Decode returns an empty Status. It
// returns an error of deployerlib.NewConfigError if the provider status has an unexpected kind or cannot be decoded.
func (f StatusFormat) Decode(di *lsv1alpha1.DeployItem) (*Status, error) {
	status := &Status{Fields: map[string]json.RawMessage{}}
	if di.Status.ProviderStatus == nil || len(di.Status.ProviderStatus.Raw) == 0 {
		return status, nil
	}
	var kind metav1.TypeMeta
	for _, into := range []any{&kind, &status.Fields} {
		if err := json.Unmarshal(di.Status.ProviderStatus.Raw, into); err != nil {
			return nil, deployerlib.NewConfigError(statusPath, "%s", err.Error())
		}
	}
	if status.Fields == nil { // the status is null
		status.Fields = map[string]json.RawMessage{}
		return status, nil
	}
	if gvk := kind.GroupVersionKind(); gvk != f.Kind && !slices.Contains(f.Former, gvk) {
		return nil, deployerlib.NewConfigError(statusPath, "is %s %q, want %s %q", kind.APIVersion, kind.Kind, f.Kind.GroupVersion(), f.Kind.Kind)
	}
	if err := status.decodeInventory(); err != nil {
		return nil, err
	}
	for _, field := range []string{"apiVersion", "kind", fieldManaged, fieldInventory, fieldDigest} {
		delete(status.Fields, field)
	}
	return status, nil
}

// decodeInventory decodes the inventory. If the entries lack the fields that the list of managed resources contains, it
// completes them from the element at the same position. If there is no inventory, or if another program has changed the
// list, it makes the entries from the list alone.
func (s *Status) decodeInventory() error {
	var managed []managedEntry
	if raw, found := s.Fields[fieldManaged]; found {
		if err := json.Unmarshal(raw, &managed); err != nil {
			return deployerlib.NewConfigError(statusPath+"."+fieldManaged, "%s", err.Error())
		}
	}
	if raw := s.Fields[fieldInventory]; len(raw) > 0 && string(raw) != "null" {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &s.Inventory); err != nil {
			return deployerlib.NewConfigError(statusPath+"."+fieldInventory, "%s", err.Error())
		}
		if !slices.ContainsFunc(s.Inventory.Entries, func(e apply.Entry) bool { return e.Name == "" }) {
			return nil
		}
	}
	var listed []apply.Entry
	for i := range managed {
		entry := apply.Entry{}
		if err := managed[i].completeEntry(&entry); err != nil {
			return deployerlib.NewConfigError(statusPath+"."+fieldManaged, "patchBeforeDelete of %s: %s", entry.Name, err.Error())
		}
		listed = append(listed, entry)
	}
	if string(s.Fields[fieldDigest]) != computeDigest(listed) || len(s.Inventory.Entries) != len(listed) {
		s.Inventory.Entries = listed
		return nil
	}
	for i := range managed {
		_ = managed[i].completeEntry(&s.Inventory.Entries[i]) // there was no error above
	}
	return nil
}

// completeEntry sets the fields of an inventory entry that the list of managed resources contains.
func (m *managedEntry) completeEntry(entry *apply.Entry) error {
	entry.APIVersion, entry.Kind = cmp.Or(m.Resource.APIVersion, m.APIVersion), cmp.Or(m.Resource.Kind, m.Kind)
	entry.Namespace, entry.Name = cmp.Or(m.Resource.Namespace, m.Namespace), cmp.Or(m.Resource.Name, m.Name)
	entry.UID, entry.Policy, entry.AnnotateBeforeDelete = m.Resource.UID, toStoredPolicy(apply.Policy(m.Policy)), m.AnnotateBeforeDelete
	if m.PatchBeforeDelete == nil {
		return nil
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(m.PatchBeforeDelete.Raw, &entry.PatchBeforeDelete); err != nil {
		return errors.New("must be an object")
	}
	return nil
}

// computeDigest returns a hash of the references and UIDs of entries, as a JSON string. Store stores it together with
// entries that have no reference of their own.
func computeDigest(entries []apply.Entry) string {
	sum := sha256.New()
	for _, e := range entries {
		_, _ = fmt.Fprintf(sum, "%q %q %q %q %q\n", e.APIVersion, e.Kind, e.Namespace, e.Name, e.UID) // a hash returns no error
	}
	return strconv.Quote(base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:16]))
}

// withoutManaged returns the entries without the fields that complete sets.
func withoutManaged(entries []apply.Entry) []apply.Entry {
	out := slices.Clone(entries)
	for i := range out {
		e := &out[i]
		e.APIVersion, e.Kind, e.Namespace, e.Name = "", "", "", ""
		e.UID, e.Policy, e.AnnotateBeforeDelete, e.PatchBeforeDelete = "", "", nil, nil
	}
	return out
}

// Store sets the provider status of the item, in memory. Landscaper's own deployer can read this status, but ignores
// the inventory. The elements of managedResources and the entries of the inventory have the same order, and fields that
// managedResources contains are not stored a second time in the inventory. The field managedDigest shows whether
// another program has changed managedResources since then. There are two exceptions, in which the inventory contains
// all fields: managedResources does not contain all objects, or it would be larger than 128 KiB (about 900 objects), so
// that Store omits it. If the status is larger than 1 MiB, Store returns an error of deployerlib.NewConfigError, so
// that the item fails before anything is written to its target.
func (f StatusFormat) Store(di *lsv1alpha1.DeployItem, status *Status) error {
	list, err := toManagedResources(status.Inventory)
	if err != nil {
		return err
	}
	body := map[string]json.RawMessage{}
	maps.Copy(body, status.Fields)
	managed, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode managed resources: %w", err)
	}
	inventory := status.Inventory
	if len(list) > 0 && len(managed) <= maxManaged {
		body[fieldManaged] = managed
		if len(list) == len(inventory.Entries) {
			body[fieldDigest] = json.RawMessage(computeDigest(inventory.Entries))
			inventory.Entries = withoutManaged(inventory.Entries)
		}
	}
	if body[fieldInventory], err = json.Marshal(inventory); err != nil {
		return fmt.Errorf("encode inventory: %w", err)
	}
	return deployerlib.SetProviderStatus(di, body, f.Kind)
}

// toManagedResources returns the list of managed resources, for users and for Landscaper's own deployer. That deployer
// deletes every object in the list. The list therefore omits objects that do not belong to the item, if the policy of
// their manifest is apply.PolicyFallback or apply.PolicyImmutable.
func toManagedResources(inventory apply.Inventory) (managedresource.ManagedResourceStatusList, error) {
	list := managedresource.ManagedResourceStatusList{}
	for _, e := range inventory.Entries {
		if e.UID == "" && (e.Policy == apply.PolicyFallback || e.Policy == apply.PolicyImmutable) {
			continue
		}
		one := managedresource.ManagedResourceStatus{
			Policy:               managedresource.ManifestPolicy(cmp.Or(e.Policy, apply.PolicyManage)),
			AnnotateBeforeDelete: e.AnnotateBeforeDelete,
			Resource:             corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		}
		if len(e.PatchBeforeDelete) > 0 {
			patch, err := json.Marshal(e.PatchBeforeDelete)
			if err != nil {
				return nil, fmt.Errorf("encode patchBeforeDelete of %s: %w", e.Name, err)
			}
			one.PatchBeforeDelete = &runtime.RawExtension{Raw: patch}
		}
		list = append(list, one)
	}
	return list, nil
}
