// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/internal/redact"
)

// exportSizeLimit is the maximum size of the data of a Secret.
const exportSizeLimit = corev1.MaxSecretSize

// WriteExport stores the exported values of an item in a Secret of the item's namespace, under the key "config", and
// sets di.Status.ExportReference. If the item already refers to a Secret, WriteExport uses that Secret. Otherwise, the
// name of the Secret is "<item>-export". The Secret has an owner reference to the item and is deleted together with the
// item. If an older item of the same name was deleted without its Secret, WriteExport replaces that Secret. If the type
// of values is json.RawMessage or []byte, WriteExport stores the bytes without a change. Otherwise it stores values as
// JSON. If the Secret is already up to date, WriteExport does not write it.
//
// The client c should read from the API server, because a caching client would watch every Secret. Create c with
// client.Options.Cache nil.
//
// WriteExport returns an error of NewConfigError if the Secret belongs to another item, or if the values exceed 1 MiB.
// In the second case, the error names the largest value. Any other error comes from the API server.
func WriteExport(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem, values any) error {
	data, err := encodeExport(values)
	if err != nil {
		return err
	}
	secret, err := readExport(ctx, c, di)
	if err != nil {
		return err
	}
	if isLeftover(secret, di) {
		if err := removeExport(ctx, c, secret); err != nil {
			return err
		}
		secret = newExportSecret(secret.Namespace, secret.Name)
	}
	if secret.ResourceVersion != "" && slices.Equal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], data) {
		setExportReference(di, secret)
		return nil
	}
	secret.Data = map[string][]byte{lsv1alpha1.DataObjectSecretDataKey: data}
	if secret.ResourceVersion == "" {
		secret.OwnerReferences = []metav1.OwnerReference{newOwnerReference(di)}
		err = c.Create(ctx, secret)
	} else {
		err = c.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write export Secret %s: %w", client.ObjectKeyFromObject(secret), redact.Error(err, data))
	}
	setExportReference(di, secret)
	return nil
}

// DeleteExport deletes the export Secret of an item and removes the reference to the Secret from di.Status. If the
// Secret does not exist or does not belong to the item, DeleteExport only removes the reference and returns nil.
func DeleteExport(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem) error {
	if di.Status.ExportReference == nil {
		return nil
	}
	secret, err := readExport(ctx, c, di)
	if err != nil && !isForeign(err) {
		return err
	}
	if err == nil && secret.ResourceVersion != "" {
		if err := removeExport(ctx, c, secret); err != nil {
			return err
		}
	}
	di.Status.ExportReference = nil
	return nil
}

// removeExport deletes the Secret, provided that its UID has not changed.
func removeExport(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	err := c.Delete(ctx, secret, client.Preconditions{UID: new(secret.UID)})
	if err != nil && !notfound.IsProof(err) {
		return fmt.Errorf("delete export Secret %s: %w", client.ObjectKeyFromObject(secret), redact.Error(err, slices.Collect(maps.Values(secret.Data))...))
	}
	return nil
}

// encodeExport returns the data of the Secret.
func encodeExport(values any) ([]byte, error) {
	var data []byte
	switch v := values.(type) {
	case json.RawMessage:
		data = v
	case []byte:
		data = v
	default:
		var err error
		if data, err = json.Marshal(values); err != nil {
			return nil, fmt.Errorf("encode export: %w", err)
		}
	}
	if len(data) > exportSizeLimit {
		return nil, NewConfigError("status.exportRef", "the exported values have %d bytes, more than the %d that a Secret can hold%s",
			len(data), exportSizeLimit, describeLargestValue(data))
	}
	return data, nil
}

// describeLargestValue returns a text about the largest exported value, for an error message. If data is not a JSON
// object, it returns an empty string.
func describeLargestValue(data []byte) string {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil || len(values) == 0 {
		return ""
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(values)), func(a, b string) int { return len(values[a]) - len(values[b]) })
	return fmt.Sprintf("; the largest is %q with %d bytes", largest, len(values[largest]))
}

// foreignError is the error for a Secret that belongs to another item.
type foreignError struct{ error }

func (e foreignError) Unwrap() error { return e.error }

// isForeign reports whether err is a foreignError.
func isForeign(err error) bool {
	_, ok := err.(foreignError) //nolint:errorlint // made here, never wrapped
	return ok
}

// newExportSecret returns a Secret object that contains only a namespace and a name.
func newExportSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// isLeftover reports whether the Secret belonged only to an older item with the same name as di. In this case, the
// older item was deleted without its Secret, because its reference to the Secret was lost or never stored.
func isLeftover(secret *corev1.Secret, di *lsv1alpha1.DeployItem) bool {
	return len(secret.OwnerReferences) > 0 && !slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool {
		was := newOwnerReference(di)
		was.UID = o.UID
		return o != was || o.UID == di.UID
	})
}

// readExport gets the item's export Secret, which may have belonged to an older item of the same name. If the Secret
// does not exist, the returned Secret has no resourceVersion.
func readExport(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem) (*corev1.Secret, error) {
	secret := newExportSecret(di.Namespace, di.Name+"-export")
	if ref := di.Status.ExportReference; ref != nil && ref.Name != "" {
		secret.Name = ref.Name
		if ref.Namespace != "" && ref.Namespace != di.Namespace {
			return nil, foreignError{NewConfigError("status.exportRef.namespace", "is %q, not the item's namespace", ref.Namespace)}
		}
	}
	key := client.ObjectKeyFromObject(secret)
	err := c.Get(ctx, key, secret)
	if notfound.IsProof(err) {
		return secret, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get export Secret %s: %w", key, err)
	}
	isOurs := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == di.UID })
	if !isOurs && !isLeftover(secret, di) {
		return nil, foreignError{NewConfigError("status.exportRef", "Secret %q exists and does not belong to this item", key.Name)}
	}
	return secret, nil
}

// setExportReference sets the item's reference to its Secret.
func setExportReference(di *lsv1alpha1.DeployItem, secret *corev1.Secret) {
	di.Status.ExportReference = &lsv1alpha1.ObjectReference{Name: secret.Name, Namespace: secret.Namespace}
}

// newOwnerReference returns an owner reference to an item. The reference does not block the deletion of the item.
func newOwnerReference(di *lsv1alpha1.DeployItem) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: lsv1alpha1.SchemeGroupVersion.String(), Kind: "DeployItem", Name: di.Name, UID: di.UID}
}
