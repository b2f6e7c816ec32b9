// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/targets"
)

// Registered is the information that a deployer publishes about itself.
type Registered = registration.Registration

// decodeRegistered reads the annotation of a lease.
func decodeRegistered(text string) (Registered, error) {
	var r Registered
	if len(text) > registration.MaxBytes {
		return r, fmt.Errorf("is longer than %d bytes", registration.MaxBytes)
	}
	err := json.Unmarshal([]byte(text), &r)
	return r, err
}

// These constants are the results of checkResponsible.
const (
	responsibleYes     = "yes"
	responsibleNo      = "no"
	responsibleUnknown = "unknown"
)

// checkResponsible reports whether a deployer is responsible for the item. The answer is yes, no or unknown. Unless the
// answer is yes, it also returns the reason.
func checkResponsible(d *KnownDeployer, f *Facts) (answer, why string) {
	di := f.Item
	switch {
	case d.Type != "" && d.Type != string(di.Spec.Type):
		return responsibleNo, fmt.Sprintf("the deployer processes items of type %s", shortenName(d.Type))
	case d.Namespace != "" && d.Namespace != di.Namespace:
		return responsibleNo, fmt.Sprintf("the deployer only processes namespace %s (--namespace)", shortenName(d.Namespace))
	case !(deployerlib.Shard{Index: d.Shard, Count: d.Shards}).Contains(di.Namespace):
		return responsibleNo, fmt.Sprintf("the namespace of the item does not belong to shard %d of %d, which the deployer processes", d.Shard, d.Shards)
	}
	if d.ItemSelector != "" {
		selector, err := labels.Parse(d.ItemSelector)
		if err != nil {
			return responsibleUnknown, "the item selector of the deployer cannot be read"
		}
		if !selector.Matches(labels.Set(di.Labels)) {
			return responsibleNo, fmt.Sprintf("the item's labels do not match the selector %s of the deployer", shortenName(d.ItemSelector))
		}
	}
	return checkTarget(d, f)
}

// checkTarget compares the Target of the item with the target selectors of the deployer. Its results have the same
// meaning as those of the function `checkResponsible`.
func checkTarget(d *KnownDeployer, f *Facts) (answer, why string) {
	switch {
	case len(d.TargetSelectors) == 0 || f.Item.Spec.Target == nil:
		return responsibleYes, ""
	case f.TargetMissing && f.Item.Status.Deployer.Name == d.Name:
		return responsibleYes, "" // if the Target was deleted, the deployer that processed the item before stays responsible
	case f.TargetMissing:
		return responsibleNo, "the deployer selects Targets, and the item's Target does not exist"
	case f.Target == nil:
		return responsibleUnknown, "the deployer selects Targets, and the item's Target cannot be read"
	}
	matches, err := targets.MatchesSelectors(f.Target, d.TargetSelectors)
	switch {
	case err != nil:
		return responsibleUnknown, "the target selectors of the deployer are not valid"
	case !matches:
		return responsibleNo, "the target selectors of the deployer do not match the item's Target: " + formatSelectors(d.TargetSelectors)
	}
	return responsibleYes, ""
}

// formatSelectors returns selectors as a short text.
func formatSelectors(selectors []lsv1alpha1.TargetSelector) string {
	raw, err := json.Marshal(selectors)
	if err != nil {
		return ""
	}
	return shortenName(string(raw))
}
