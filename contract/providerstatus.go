// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxProviderStatus is the maximum size of status.providerStatus, in bytes of JSON. A larger provider status is
// refused. It is never truncated: objects that are missing from a truncated inventory would never be deleted.
const MaxProviderStatus = 1 << 20

// CheckProviderStatus returns an error if a provider status must not be stored. A provider status is valid if it is
// absent, or if it is a JSON object of at most [MaxProviderStatus] bytes with a valid apiVersion and kind. If it
// contains metadata, the fields of the metadata must have the right types. The API server accepts an invalid provider
// status on /status, but then refuses every later write to the item, including the removal of its finalizer. The error
// has the code ERR_CONFIGURATION_PROBLEM.
func CheckProviderStatus(raw *runtime.RawExtension) error {
	if isEmptyRaw(raw) {
		return nil
	}
	object, err := decodeProviderStatus(raw)
	if err != nil || object == nil {
		return err
	}
	if err := checkType(object); err != nil {
		return err
	}
	return checkMetadata(object["metadata"])
}

// maxGrowth is the maximum factor by which encoding/json lengthens a JSON text. The text becomes longer because
// characters such as < are escaped.
const maxGrowth = 6

// decodeProviderStatus decodes a provider status. It returns nil if the status is null, and an error if the encoded
// status is too large. It does not encode a short status, because a short status cannot become too large.
func decodeProviderStatus(raw *runtime.RawExtension) (map[string]json.RawMessage, error) {
	var small map[string]json.RawMessage
	if len(raw.Raw) <= MaxProviderStatus/maxGrowth && json.Unmarshal(raw.Raw, &small) == nil && small != nil {
		return small, nil
	}
	body, err := json.Marshal(raw)
	switch {
	case err != nil:
		return nil, newProviderStatusError("is not JSON", err)
	case bytes.Equal(body, []byte("null")):
		return nil, nil
	case len(body) > MaxProviderStatus:
		return nil, newProviderStatusError(fmt.Sprintf("is %d bytes, at most %d are allowed", len(body), MaxProviderStatus), nil)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, newProviderStatusError("is not an object", err)
	}
	return object, nil
}

// isEmptyRaw reports whether a raw extension is empty.
func isEmptyRaw(raw *runtime.RawExtension) bool {
	return raw == nil || (len(bytes.TrimSpace(raw.Raw)) == 0 && raw.Object == nil)
}

func checkType(object map[string]json.RawMessage) error {
	apiVersion, err := getString(object, "apiVersion")
	if err != nil {
		return err
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return newProviderStatusError("has an invalid apiVersion", err)
	}
	kind, err := getString(object, "kind")
	if err != nil {
		return err
	}
	if faults := validation.IsDNS1035Label(strings.ToLower(kind)); len(faults) > 0 {
		return newProviderStatusError("has an invalid kind: "+strings.Join(faults, ", "), nil)
	}
	return nil
}

// getString returns the value of a required string field.
func getString(object map[string]json.RawMessage, key string) (string, error) {
	var s string
	if err := json.Unmarshal(object[key], &s); err != nil || s == "" {
		return "", newProviderStatusError("has no "+key, nil)
	}
	return s, nil
}

func checkMetadata(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return newProviderStatusError("has invalid metadata", err)
	}
	return nil
}

func newProviderStatusError(message string, cause error) error {
	return &CodedError{
		Operation: "ProviderStatus", Reason: "InvalidProviderStatus", Message: "status.providerStatus " + message, Err: cause,
		Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
	}
}
