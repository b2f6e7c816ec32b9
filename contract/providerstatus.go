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

// MaxProviderStatus is the largest status.providerStatus, in bytes of JSON. A larger one is refused and never cut,
// because objects that a shortened inventory no longer names would be left behind.
const MaxProviderStatus = 1 << 20

// CheckProviderStatus returns an error if a provider status must not be stored. A valid one is absent, or a JSON object
// of at most [MaxProviderStatus] bytes with a valid apiVersion and kind, and metadata of the right types if it has any.
// The API server accepts an invalid one on /status and then refuses every later write to the item, including the
// removal of its finalizer. The error has the code ERR_CONFIGURATION_PROBLEM.
func CheckProviderStatus(raw *runtime.RawExtension) error {
	if noRaw(raw) {
		return nil
	}
	body, err := json.Marshal(raw)
	switch {
	case err != nil:
		return providerFault("is not JSON", err)
	case bytes.Equal(body, []byte("null")):
		return nil
	case len(body) > MaxProviderStatus:
		return providerFault(fmt.Sprintf("is %d bytes, at most %d are allowed", len(body), MaxProviderStatus), nil)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return providerFault("is not an object", err)
	}
	if err := checkType(object); err != nil {
		return err
	}
	return checkMetadata(object["metadata"])
}

// noRaw reports whether a raw extension is empty.
func noRaw(raw *runtime.RawExtension) bool {
	return raw == nil || (len(bytes.TrimSpace(raw.Raw)) == 0 && raw.Object == nil)
}

func checkType(object map[string]json.RawMessage) error {
	apiVersion, err := text(object, "apiVersion")
	if err != nil {
		return err
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return providerFault("has an invalid apiVersion", err)
	}
	kind, err := text(object, "kind")
	if err != nil {
		return err
	}
	if faults := validation.IsDNS1035Label(strings.ToLower(kind)); len(faults) > 0 {
		return providerFault("has an invalid kind: "+strings.Join(faults, ", "), nil)
	}
	return nil
}

// text returns the value of a required string field.
func text(object map[string]json.RawMessage, key string) (string, error) {
	var s string
	if err := json.Unmarshal(object[key], &s); err != nil || s == "" {
		return "", providerFault("has no "+key, nil)
	}
	return s, nil
}

func checkMetadata(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return providerFault("has invalid metadata", err)
	}
	return nil
}

func providerFault(message string, cause error) error {
	return &Fault{
		Operation: "ProviderStatus", Reason: "InvalidProviderStatus", Message: "status.providerStatus " + message, Err: cause,
		Codes: []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorConfigurationProblem},
	}
}
