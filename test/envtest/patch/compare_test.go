// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/patch"
)

// typedApart is a Go type for the kind Apart. It does not declare all fields of the kind.
type typedApart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   typedPart `json:"spec"`
	Status typedPart `json:"status"`
}

type typedPart struct {
	N     int64       `json:"n,omitempty"`
	Text  string      `json:"text,omitempty"`
	List  []string    `json:"list,omitempty"`
	Items []typedItem `json:"items,omitempty"`
}

type typedItem struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
}

func (a *typedApart) DeepCopyObject() runtime.Object {
	data, err := json.Marshal(a)
	out := &typedApart{}
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, out)).To(Succeed())
	return out
}

func newTypedClient() client.Client {
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "patch.example.org", Version: "v1"}
	scheme.AddKnownTypeWithName(gv.WithKind(apart), &typedApart{})
	metav1.AddToGroupVersion(scheme, gv)
	out, err := client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return out
}

// situation is a change that a controller makes to an object while another client writes to it.
type situation struct {
	name string
	// change makes the change to a typed Go object, as most controllers do.
	change func(*typedApart)
	// raw makes the same change as `change`, but to the stored body. Some tools work on this body.
	raw func(body map[string]any) error
	// others is the change that another client writes after the controller has read the object.
	others func(body map[string]any)
	// good reports whether the stored object contains both changes.
	good func(body map[string]any) bool
}

func getField(body map[string]any, keys ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(body, keys...)
	return value
}

var situations = []situation{
	{
		name:   "lost update: two clients count up at the same time",
		change: func(a *typedApart) { a.Spec.N++ },
		raw:    increment("spec"),
		others: func(body map[string]any) { Expect(increment("spec")(body)).To(Succeed()) },
		good:   func(body map[string]any) bool { return getField(body, "spec", "n") == int64(3) },
	},
	{
		name:   "second patch: a label, then the status, of one object in memory",
		change: func(a *typedApart) { a.Labels = map[string]string{"old": "1", "mine": "1"}; a.Status.Text = "done" },
		raw: func(body map[string]any) error {
			return firstError(set("1", "metadata", "labels", "mine")(body), set("done", "status", "text")(body))
		},
		good: func(body map[string]any) bool {
			return getField(body, "metadata", "labels", "mine") == "1" && getField(body, "status", "text") == "done"
		},
	},
	{
		name:   "list under conflict: two clients append",
		change: func(a *typedApart) { a.Spec.List = append(a.Spec.List, "mine") },
		raw: func(body map[string]any) error {
			list, _, err := unstructured.NestedSlice(body, "spec", "list")
			return firstError(err, set(append(list, "mine"), "spec", "list")(body))
		},
		others: func(body map[string]any) {
			Expect(set([]any{"a", "b", "theirs"}, "spec", "list")(body)).To(Succeed())
		},
		good: func(body map[string]any) bool { return len(getField(body, "spec", "list").([]any)) == 4 },
	},
	{
		name:   "unknown field: an item of a list has a field that the Go type does not declare",
		change: func(a *typedApart) { a.Spec.Items[0].Image = "new" },
		good: func(body map[string]any) bool {
			item, _ := getField(body, "spec", "items").([]any)[0].(map[string]any)
			return item["newer"] == "field" && item["image"] == "new"
		},
	},
	{
		name: "explicit zero: a default is set only where nothing is stored",
		change: func(a *typedApart) {
			if a.Status.N == 0 {
				a.Status.N = 5
			}
		},
		raw: func(body map[string]any) error {
			if getField(body, "status", "n") != nil {
				return nil
			}
			return set(int64(5), "status", "n")(body)
		},
		good: func(body map[string]any) bool { return getField(body, "status", "n") == int64(0) },
	},
	{
		name:   "status subresource: one call for spec and status",
		change: func(a *typedApart) { a.Spec.Text, a.Status.Text = "spec", "status" },
		raw: func(body map[string]any) error {
			return firstError(set("spec", "spec", "text")(body), set("status", "status", "text")(body))
		},
		good: func(body map[string]any) bool {
			return getField(body, "spec", "text") == "spec" && getField(body, "status", "text") == "status"
		},
	},
}

// tool changes an object as a situation requires. After it has read the object, it must call `between` once.
type tool struct {
	name string
	run  func(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error
}

var tools = []tool{
	{"`MergeFrom`", withMergeFrom},
	{"`CreateOrPatch`", withCreateOrPatch},
	{"server-side apply", withApply},
	{"kopf", asKopf},
	{"this package", withPatch},
}

func withMergeFrom(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error {
	base := obj.DeepCopyObject().(*typedApart)
	s.change(obj)
	between()
	if reflect.DeepEqual(base.ObjectMeta, obj.ObjectMeta) && reflect.DeepEqual(base.Spec, obj.Spec) {
		return c.Status().Patch(ctx, obj, client.MergeFrom(base))
	}
	if err := c.Patch(ctx, obj, client.MergeFrom(base)); err != nil {
		return err
	}
	if strings.HasPrefix(s.name, "status subresource") {
		return nil // the tool makes only one call
	}
	// This patch is based on obj, which contains the response to the first patch.
	return c.Status().Patch(ctx, obj, client.MergeFrom(base))
}

func withCreateOrPatch(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error {
	_, err := controllerutil.CreateOrPatch(ctx, c, obj, func() error { s.change(obj); between(); return nil })
	return err
}

func withApply(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error {
	s.change(obj)
	between()
	wanted := &typedApart{Spec: obj.Spec, Status: obj.Status}
	wanted.SetGroupVersionKind(schema.GroupVersionKind{Group: "patch.example.org", Version: "v1", Kind: apart})
	wanted.Namespace, wanted.Name, wanted.Labels = obj.Namespace, obj.Name, obj.Labels
	data, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	apply := client.RawPatch(types.ApplyPatchType, data)
	if err := c.Patch(ctx, obj, apply, client.FieldOwner("compare"), client.ForceOwnership); err != nil {
		return err
	}
	if strings.HasPrefix(s.name, "status subresource") {
		return nil // the tool makes only one call
	}
	return c.Status().Patch(ctx, obj, apply, client.FieldOwner("compare"), client.ForceOwnership)
}

// asKopf sends the requests that the documentation of kopf describes. Functions run on the raw body. Their changes are
// sent as a JSON patch with the resourceVersion of this body. After a conflict, the functions run again.
func asKopf(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error {
	for _, subresource := range []string{"", "status"} {
		for {
			raw := &unstructured.Unstructured{}
			raw.SetGroupVersionKind(schema.GroupVersionKind{Group: "patch.example.org", Version: "v1", Kind: apart})
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), raw); err != nil {
				return err
			}
			before := raw.DeepCopy()
			if err := s.raw(raw.Object); err != nil {
				return err
			}
			between()
			between = func() {}
			steps := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": raw.GetResourceVersion()}}
			for _, key := range []string{"metadata/labels", "spec", "status"} {
				if keys := strings.Split(key, "/"); (key == "status") == (subresource == "status") && fmt.Sprint(getField(before.Object, keys...)) != fmt.Sprint(getField(raw.Object, keys...)) {
					steps = append(steps, map[string]any{"op": "add", "path": "/" + key, "value": getField(raw.Object, keys...)})
				}
			}
			if len(steps) == 1 {
				break
			}
			data, err := json.Marshal(steps)
			if err != nil {
				return err
			}
			if subresource == "" {
				err = c.Patch(ctx, raw, client.RawPatch(types.JSONPatchType, data))
			} else {
				err = c.SubResource(subresource).Patch(ctx, raw, client.RawPatch(types.JSONPatchType, data))
			}
			if !apierrors.IsConflict(err) {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func withPatch(ctx context.Context, c client.Client, obj *typedApart, s situation, between func()) error {
	p := &patch.Patch{}
	if s.raw != nil {
		p.Append(s.raw)
	} else {
		p.Append(patch.Typed(func(a *typedApart) error { s.change(a); return nil }))
	}
	p.Append(func(map[string]any) error { between(); return nil })
	_, err := p.Apply(ctx, c, obj)
	return err
}

var _ = Describe("Comparison in docs/patching.md", func() {
	for _, s := range situations {
		It("each tool has the result that the guide shows: "+s.name+" [F14, F15]", func(ctx SpecContext) {
			row := []string{s.name}
			for _, tool := range tools {
				row = append(row, runTool(ctx, tool, s))
			}
			guide, err := os.ReadFile("../../../docs/patching.md")
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Split(string(guide), "\n")).To(ContainElement("| " + strings.Join(row, " | ") + " |"))
			Expect(row[len(row)-1]).To(Equal("right"))
		})
	}
})

// runTool runs a tool in a situation, and returns the result as a word of the table in docs/patching.md.
func runTool(ctx context.Context, tool tool, s situation) string {
	c, raw := newTypedClient(), create(ctx, apart)
	direct := newClient(cfg)
	Expect(set([]any{map[string]any{"name": "a", "image": "old", "newer": "field"}}, "spec", "items")(raw.Object)).To(Succeed())
	Expect(direct.Update(ctx, raw)).To(Succeed())
	Expect(set(int64(0), "status", "n")(raw.Object)).To(Succeed())
	Expect(direct.Status().Update(ctx, raw)).To(Succeed())
	obj := &typedApart{}
	Expect(c.Get(ctx, client.ObjectKeyFromObject(raw), obj)).To(Succeed())
	once := false
	between := func() {
		if s.others == nil || once {
			return
		}
		once = true
		s.others(raw.Object)
		Expect(direct.Update(ctx, raw)).To(Succeed())
	}
	if s.raw == nil && tool.name == "kopf" {
		s.raw = func(body map[string]any) error {
			items, _, err := unstructured.NestedSlice(body, "spec", "items")
			items[0].(map[string]any)["image"] = "new"
			return firstError(err, set(items, "spec", "items")(body))
		}
	}
	err := tool.run(ctx, c, obj, s, between)
	switch {
	case apierrors.IsConflict(err):
		return "conflict"
	case err != nil:
		Fail(tool.name + " in " + s.name + ": " + err.Error())
	case s.good(read(ctx, raw)):
		return "right"
	}
	return "**lost**"
}
