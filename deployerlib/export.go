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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// exportSizeLimit is the maximum size of the data of a Secret.
const exportSizeLimit = corev1.MaxSecretSize

// WriteExport stores the exported values of an item in a Secret of the item's namespace, under the key "config", and
// sets di.Status.ExportReference. The Secret is the one that the item already refers to, or "<item>-export". It has an
// owner reference to the item and is deleted with it. A Secret of a deleted item with the same name is replaced. values
// of type json.RawMessage or []byte are stored as they are, and other values as JSON. If nothing changed, nothing is
// written.
//
// c should read from the API server, because a caching client would watch every Secret. Create it with
// client.Options.Cache nil. WriteExport returns a ConfigError if the Secret belongs to another item or the values
// exceed 1 MiB, and otherwise the error of the API server.
func WriteExport(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem, values any) error {
	data, err := exportData(values)
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
		secret = emptyExport(secret.Namespace, secret.Name)
	}
	if secret.ResourceVersion != "" && slices.Equal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], data) {
		refer(di, secret)
		return nil
	}
	secret.Data = map[string][]byte{lsv1alpha1.DataObjectSecretDataKey: data}
	if secret.ResourceVersion == "" {
		secret.OwnerReferences = []metav1.OwnerReference{ownerOf(di)}
		err = c.Create(ctx, secret)
	} else {
		err = c.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write export Secret %s: %w", client.ObjectKeyFromObject(secret), redact.Error(err, data))
	}
	refer(di, secret)
	return nil
}

// DeleteExport deletes the export Secret of an item and the reference to it. If the Secret does not exist or does not
// belong to the item, DeleteExport does not delete it and returns nil.
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

// removeExport deletes the Secret with this UID.
func removeExport(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	err := c.Delete(ctx, secret, client.Preconditions{UID: new(secret.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete export Secret %s: %w", client.ObjectKeyFromObject(secret), redact.Error(err, slices.Collect(maps.Values(secret.Data))...))
	}
	return nil
}

// exportData returns the data of the Secret.
func exportData(values any) ([]byte, error) {
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
		return nil, ConfigError("status.exportRef", "the exported values have %d bytes, more than the %d that a Secret can hold", len(data), exportSizeLimit)
	}
	return data, nil
}

// foreignError is the error for a Secret that belongs to another item.
type foreignError struct{ error }

func (e foreignError) Unwrap() error { return e.error }

// isForeign reports whether err is a foreignError.
func isForeign(err error) bool {
	_, ok := err.(foreignError) //nolint:errorlint // made here, never wrapped
	return ok
}

// emptyExport returns a Secret that does not exist yet.
func emptyExport(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// isLeftover reports whether a Secret belonged to an item of the same name that no longer exists. Its writer ended
// before it set the reference, or the reference was lost.
func isLeftover(secret *corev1.Secret, di *lsv1alpha1.DeployItem) bool {
	return len(secret.OwnerReferences) > 0 && !slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool {
		was := ownerOf(di)
		was.UID = o.UID
		return o != was || o.UID == di.UID
	})
}

// readExport gets the item's export Secret, or one that an item of the same name left behind. The Secret has no
// resourceVersion if it does not exist.
func readExport(ctx context.Context, c client.Client, di *lsv1alpha1.DeployItem) (*corev1.Secret, error) {
	secret := emptyExport(di.Namespace, di.Name+"-export")
	if ref := di.Status.ExportReference; ref != nil && ref.Name != "" {
		secret.Name = ref.Name
		if ref.Namespace != "" && ref.Namespace != di.Namespace {
			return nil, foreignError{ConfigError("status.exportRef.namespace", "is %q, not the item's namespace", ref.Namespace)}
		}
	}
	key := client.ObjectKeyFromObject(secret)
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return secret, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get export Secret %s: %w", key, err)
	}
	isOurs := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == di.UID })
	if !isOurs && !isLeftover(secret, di) {
		return nil, foreignError{ConfigError("status.exportRef", "Secret %q exists and does not belong to this item", key.Name)}
	}
	return secret, nil
}

// refer sets the item's reference to its Secret.
func refer(di *lsv1alpha1.DeployItem, secret *corev1.Secret) {
	di.Status.ExportReference = &lsv1alpha1.ObjectReference{Name: secret.Name, Namespace: secret.Namespace}
}

// ownerOf returns an owner reference to an item that does not block its deletion.
func ownerOf(di *lsv1alpha1.DeployItem) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: lsv1alpha1.SchemeGroupVersion.String(), Kind: "DeployItem", Name: di.Name, UID: di.UID}
}
