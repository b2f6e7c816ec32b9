// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/patch"
)

// The sender of a patch can store the patch in a context. Functions that receive this context can then add changes to
// the patch.
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

// With WithOptimisticLock, Apply returns a conflict if another client has changed the object since it was read.
func ExampleWithOptimisticLock() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{"greeting": "hello"})
	read := obj.DeepCopy()

	first := &patch.Patch{}
	first.Spec().Set("greeting", "good morning")
	_, err := first.Apply(ctx, c, obj)
	fmt.Println(err)

	second := &patch.Patch{}
	second.Spec().Set("greeting", "good night")
	_, err = second.Apply(ctx, c, read, patch.WithOptimisticLock(), patch.WithMaxAttempts(1))
	fmt.Println(apierrors.IsConflict(err), patch.IsTooLarge(err))
	// Output:
	// <nil>
	// true false
}

// A patch that deletes a key of a map does not create a missing map [F17].
func ExamplePatch_absent() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{"greeting": "hello"})

	p := &patch.Patch{}
	p.Spec().In("tags").Set("theirs", nil) // the object has no spec.tags
	p.Labels().Set("team", "blue")
	result, err := p.Apply(ctx, c, obj)

	fmt.Println(len(result.Calls), result.Body["spec"], obj.GetLabels(), err)
	// Output: 1 map[greeting:hello] map[team:blue] <nil>
}
