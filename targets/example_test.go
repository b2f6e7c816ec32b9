// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/deployerkit/deployerkit/targets"
)

// This deployer is responsible only for Targets of the development landscapes, which have a label.
func ExampleMatchesSelectors() {
	selectors := []lsv1alpha1.TargetSelector{{
		Labels: []lsv1alpha1.Requirement{{Key: "landscape", Operator: selection.In, Values: []string{"dev", "canary"}}},
	}}
	for _, landscape := range []string{"dev", "live"} {
		target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"landscape": landscape}}}
		fmt.Println(targets.MatchesSelectors(target, selectors))
	}
	selectors[0].Labels[0].Operator = "like"
	fmt.Println(targets.ValidateSelectors(selectors))
	// Output:
	// true <nil>
	// false <nil>
	// targetSelectors[0].labels[0].operator: Unsupported value: "like": supported values: "in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"
}
