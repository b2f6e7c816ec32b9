// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/patch"
)

// Code that is called deep below can add to the patch that its caller sends.
func ExampleFromContext() {
	label := func(ctx context.Context) {
		if p := patch.FromContext(ctx); p != nil {
			p.Labels().Set("example.org/team", "blue")
		}
	}

	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{})
	p := &patch.Patch{}
	label(patch.NewContext(ctx, p))
	result, err := p.Apply(ctx, c, obj)
	labels, _, _ := unstructured.NestedStringMap(result.Body, "metadata", "labels")
	fmt.Println(len(result.Calls), labels, err)
	// Output: 1 map[example.org/team:blue] <nil>
}

// Locked refuses to overwrite what another client has written since the object was read.
func ExampleLocked() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{"greeting": "hello"})
	read := obj.DeepCopy()

	first := &patch.Patch{}
	first.Spec().Set("greeting", "good morning")
	_, err := first.Apply(ctx, c, obj)
	fmt.Println(err)

	second := &patch.Patch{}
	second.Spec().Set("greeting", "good night")
	_, err = second.Apply(ctx, c, read, patch.Locked(), patch.Attempts(1))
	fmt.Println(apierrors.IsConflict(err), patch.Permanent(err))
	// Output:
	// <nil>
	// true false
}

// A deletion below a map that the object at hand does not have creates no empty map [F17].
func ExamplePatch_absent() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{"greeting": "hello"})

	p := &patch.Patch{}
	p.Spec().In("tags").Set("theirs", nil) // the object at hand has no spec.tags
	p.Labels().Set("team", "blue")
	result, err := p.Apply(ctx, c, obj)

	fmt.Println(len(result.Calls), result.Body["spec"], obj.GetLabels(), err)
	// Output: 1 map[greeting:hello] map[team:blue] <nil>
}
