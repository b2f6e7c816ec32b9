// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deployerkit/deployerkit/deployermain/registration"
	"github.com/deployerkit/deployerkit/targets"
)

// Registered is what a deployer publishes about itself.
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

// The answers of judge.
const (
	yes       = "yes"
	no        = "no"
	undecided = "unknown"
)

// judge reports whether a deployer is responsible for the item, and why not.
func judge(d *KnownDeployer, f *Facts) (answer, why string) {
	di := f.Item
	switch {
	case d.Type != "" && d.Type != string(di.Spec.Type):
		return no, fmt.Sprintf("it works on type %s", word(d.Type))
	case d.Namespace != "" && d.Namespace != di.Namespace:
		return no, fmt.Sprintf("it works in namespace %s only (--namespace)", word(d.Namespace))
	}
	if d.ItemSelector != "" {
		selector, err := labels.Parse(d.ItemSelector)
		if err != nil {
			return undecided, "its item selector cannot be read"
		}
		if !selector.Matches(labels.Set(di.Labels)) {
			return no, fmt.Sprintf("the item's labels do not match its selector %s", word(d.ItemSelector))
		}
	}
	return judgeTarget(d, f)
}

// judgeTarget compares the Target with the selectors of the deployer.
func judgeTarget(d *KnownDeployer, f *Facts) (answer, why string) {
	switch {
	case len(d.TargetSelectors) == 0 || f.Item.Spec.Target == nil:
		return yes, ""
	case f.TargetMissing && f.Item.Status.Deployer.Name == d.Name:
		return yes, "" // the deployer that was responsible before keeps the item
	case f.TargetMissing:
		return no, "it selects Targets, and the item's Target does not exist"
	case f.Target == nil:
		return undecided, "it selects Targets, and the item's Target cannot be read"
	}
	matches, err := targets.Matches(f.Target, d.TargetSelectors)
	switch {
	case err != nil:
		return undecided, "its target selectors are not valid"
	case !matches:
		return no, "its target selectors do not match the item's Target: " + selectorsText(d.TargetSelectors)
	}
	return yes, ""
}

// selectorsText is short for selectors.
func selectorsText(selectors []lsv1alpha1.TargetSelector) string {
	raw, err := json.Marshal(selectors)
	if err != nil {
		return ""
	}
	return word(string(raw))
}
