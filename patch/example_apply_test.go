// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/patch"
)

// newGreeting stores an object of a sample kind. It returns a client and the object as the client reads it.
func newGreeting(ctx context.Context, spec map[string]any) (client.Client, *unstructured.Unstructured) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Greeting",
		"metadata": map[string]any{"name": "hi", "namespace": "default"}, "spec": spec,
	}}
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(obj.GroupVersionKind())
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(obj).WithStatusSubresource(kind).Build()
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		fmt.Println(err)
	}
	return c, obj
}

func printResult(result patch.Result, err error) {
	for _, call := range result.Calls {
		fmt.Printf("%-6s %s\n", call.Subresource, call.Type)
	}
	fmt.Println("spec", result.Body["spec"], "status", result.Body["status"], "error", err)
}

func ExamplePatch() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{})

	p := &patch.Patch{}
	if _, exists, _ := unstructured.NestedString(obj.Object, "spec", "greeting"); !exists {
		p.Spec().Set("greeting", "hello")
	}
	p.Status().Set("state", "initialized")
	result, err := p.Apply(ctx, c, obj)

	printResult(result, err)
	// Output:
	//        application/merge-patch+json
	// status application/merge-patch+json
	// spec map[greeting:hello] status map[state:initialized] error <nil>
}

func ExamplePatch_removal() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{"greeting": "hello", "obsoleteField": "x"})

	p := &patch.Patch{}
	p.Spec().Set("obsoleteField", nil) // deletes the field
	p.Status().Set("phase", "updated") // overwrites the value
	result, err := p.Apply(ctx, c, obj)

	printResult(result, err)
	// Output:
	//        application/merge-patch+json
	// status application/merge-patch+json
	// spec map[greeting:hello] status map[phase:updated] error <nil>
}

const cleanup = "example.org/cleanup"

func addFinalizer(body map[string]any) error {
	finalizers, _, err := unstructured.NestedStringSlice(body, "metadata", "finalizers")
	if err != nil || slices.Contains(finalizers, cleanup) {
		return err
	}
	return unstructured.SetNestedStringSlice(body, append(finalizers, cleanup), "metadata", "finalizers")
}

// The finalizer is added once, and the finalizers of other clients stay [K33].
func ExamplePatch_finalizer() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{})

	other := &patch.Patch{}
	other.Metadata().Set("finalizers", []string{"example.org/other"})
	_, err := other.Apply(ctx, c, obj.DeepCopy())
	fmt.Println("another client writes:", err)

	p := &patch.Patch{}
	p.Append(addFinalizer)
	result, err := p.Apply(ctx, c, obj)
	fmt.Println(obj.GetFinalizers(), "attempts", result.Attempts, "error", err)

	result, err = p.Apply(ctx, c, obj)
	fmt.Println(obj.GetFinalizers(), "calls", len(result.Calls), "error", err)
	// Output:
	// another client writes: <nil>
	// [example.org/other example.org/cleanup] attempts 2 error <nil>
	// [example.org/other example.org/cleanup] calls 0 error <nil>
}

func withLabel(name, value string) patch.Func {
	return func(body map[string]any) error {
		return unstructured.SetNestedField(body, value, "metadata", "labels", name)
	}
}

// A closure can pass arguments to a function [K32, K34].
func ExamplePatch_label() {
	ctx := context.Background()
	c, obj := newGreeting(ctx, map[string]any{})

	p := &patch.Patch{}
	p.Append(withLabel("my-label", "my-value"))
	result, err := p.Apply(ctx, c, obj)

	fmt.Println(obj.GetLabels(), len(result.Calls), result.Calls[0].Type, err)
	// Output: map[my-label:my-value] 1 application/json-patch+json <nil>
}

func ExampleTyped() {
	type greeting struct {
		Spec struct {
			Languages []string `json:"languages,omitempty"`
		} `json:"spec"`
	}
	p := &patch.Patch{}
	p.Append(patch.Typed(func(g *greeting) error {
		if !slices.Contains(g.Spec.Languages, "en") {
			g.Spec.Languages = append(g.Spec.Languages, "en")
		}
		return nil
	}))

	body, err := p.ApplyTo(map[string]any{"spec": map[string]any{"languages": []any{"de"}, "unknown": true}})
	fmt.Println(body, err)
	// Output: map[spec:map[languages:[de en] unknown:true]] <nil>
}
