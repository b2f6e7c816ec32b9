// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"fmt"

	"github.com/deployerkit/deployerkit/declarative"
)

// Each kind of children has a strategy that determines how a child is changed.
func ExampleOptions() {
	options := declarative.Options{Children: []declarative.ChildKind{
		{APIVersion: "v1", Kind: "ConfigMap"},                                                   // Apply: change it in place
		{APIVersion: "v1", Kind: "Pod", Update: declarative.StrategyRecreate},                   // delete it and create another one
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Update: declarative.StrategyOnDelete}, // leave it as it is until it is deleted
	}}
	options.Default()
	fmt.Println(options.Validate())

	options.Children = append(options.Children, declarative.ChildKind{APIVersion: "v1", Kind: "Secret", Update: "Sometimes"})
	fmt.Println(options.Validate())
	// Output:
	// <nil>
	// Children[3].Update: "Sometimes" is not one of Apply, Replace, Recreate, OnDelete
}
