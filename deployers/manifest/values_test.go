// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/contract"
)

// fakeClusters holds objects by "target/kind/namespace/name", and counts how often each was read.
type fakeClusters struct {
	objects map[string]string
	reads   map[string]int
	err     error
}

func (c *fakeClusters) Get(_ context.Context, target string, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	id := strings.Join([]string{target, ref.Kind, ref.Namespace, ref.Name}, "/")
	if c.reads == nil {
		c.reads = map[string]int{}
	}
	c.reads[id]++
	if c.objects[id] == "" || c.err != nil {
		return nil, c.err
	}
	obj := &unstructured.Unstructured{}
	return obj, json.Unmarshal([]byte(c.objects[id]), &obj.Object)
}

func twoClusters() *fakeClusters {
	return &fakeClusters{objects: map[string]string{
		"/Database/ns/db": `{"metadata":{"name":"db"},"spec":{"secretRef":{"name":"s"},"farRef":{"name":"s","namespace":"far"},"badRef":{"name":7},"badNamespace":{"name":"s","namespace":7},"labels":{"a.b":"c"}},
			"status":{"url":"u","count":3,"null":null,"empty":"","nested":{"x":{"y":1}},"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}}`,
		"/Secret/ns/s":         `{"data":{"password":"cA=="}}`,
		"/Secret/far/s":        `{"data":{"password":"ZmFy"}}`,
		"other/Database/ns/db": `{"status":{"url":"other"}}`,
	}}
}

// exportsOf decodes exports, each of Database ns/db.
func exportsOf(t *testing.T, exports ...string) []Export {
	t.Helper()
	for i := range exports {
		exports[i] = "{fromResource: {apiVersion: example.com/v1, kind: Database, name: db, namespace: ns}, " + exports[i] + "}"
	}
	config, err := Decode(itemWith(t, v2+"exports: {exports: ["+strings.Join(exports, ", ")+"]}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return config.Exports
}

const intoSecret = ", fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: data.password}"

func TestReadExports(t *testing.T) {
	for name, tc := range map[string]struct {
		exports []string
		want    string
		waiting string // the reason of the only export that waits
	}{
		"Plain":              {exports: []string{"key: a, jsonPath: status.url"}, want: `{"a":"u"}`},
		"Dot":                {exports: []string{"key: a, jsonPath: .status.count"}, want: `{"a":3}`},
		"Object":             {exports: []string{"key: a, jsonPath: status.nested"}, want: `{"a":{"x":{"y":1}}}`},
		"Empty":              {exports: []string{"key: a, jsonPath: status.empty"}, want: `{"a":""}`},
		"DottedKey":          {exports: []string{"key: a.b.c, jsonPath: status.url"}, want: `{"a":{"b":{"c":"u"}}}`},
		"EscapedKey":         {exports: []string{`key: 'a\.b', jsonPath: 'spec.labels.a\.b'`}, want: `{"a.b":"c"}`},
		"Merged":             {exports: []string{"key: a.b, jsonPath: status.url", "key: a.c, jsonPath: status.count"}, want: `{"a":{"b":"u","c":3}}`},
		"MergedDeep":         {exports: []string{"key: a, jsonPath: status.nested", "key: a.x.z, jsonPath: status.count"}, want: `{"a":{"x":{"y":1,"z":3}}}`},
		"FirstOfSeveral":     {exports: []string{`key: a, jsonPath: 'status.conditions[?(@.type=="Ready")].status'`}, want: `{"a":"True"}`},
		"Reference":          {exports: []string{"key: a, jsonPath: spec.secretRef" + intoSecret}, want: `{"a":"cA=="}`},
		"FarReference":       {exports: []string{"key: a, jsonPath: spec.farRef" + intoSecret}, want: `{"a":"ZmFy"}`},
		"OtherTarget":        {exports: []string{"key: a, targetName: other, jsonPath: status.url", "key: b, jsonPath: status.url"}, want: `{"a":"other","b":"u"}`},
		"NoObject":           {exports: []string{"key: a, targetName: third, jsonPath: status.url", "key: b, jsonPath: status.url"}, want: `{"b":"u"}`, waiting: "Database ns/db does not exist"},
		"NoValue [H-33]":     {exports: []string{"key: a, jsonPath: status.absent"}, want: `{}`, waiting: "status.absent of Database ns/db does not exist"},
		"Null [H-33]":        {exports: []string{"key: a, jsonPath: status.null"}, want: `{}`, waiting: "status.null of Database ns/db does not exist"},
		"NoMatch [H-27]":     {exports: []string{`key: a, jsonPath: 'status.conditions[?(@.type=="Other")].status'`}, want: `{}`, waiting: "does not exist"},
		"NoReference":        {exports: []string{"key: a, jsonPath: status.url" + intoSecret}, want: `{}`, waiting: "status.url of Database ns/db is no reference to an object"},
		"ReferenceNoName":    {exports: []string{"key: a, jsonPath: spec.badRef" + intoSecret}, want: `{}`, waiting: "is no reference"},
		"ReferenceNamespace": {exports: []string{"key: a, jsonPath: spec.badNamespace" + intoSecret}, want: `{}`, waiting: "is no reference"},
		"ReferenceToNothing": {exports: []string{"key: a, targetName: other, jsonPath: status.url" + intoSecret}, want: `{}`, waiting: "is no reference"},
		"ReferenceGone":      {exports: []string{"key: a, jsonPath: spec.secretRef, fromObjectRef: {apiVersion: v1, kind: ConfigMap, jsonPath: data.x}"}, want: `{}`, waiting: "ConfigMap ns/s does not exist"},
		"ReferenceNoValue":   {exports: []string{"key: a, jsonPath: spec.secretRef, fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: data.x}"}, want: `{}`, waiting: "data.x of Secret ns/s does not exist"},
	} {
		t.Run(name+" [D14]", func(t *testing.T) {
			got, err := ReadExports(t.Context(), exportsOf(t, tc.exports...), twoClusters())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := EncodeExports(got.Values)
			if err != nil || string(raw) != tc.want {
				t.Errorf("ReadExports(...): want %s, got %s, %v", tc.want, raw, err)
			}
			reason := ""
			if len(got.Waiting) == 1 && got.Waiting[0].Key == "a" {
				reason = got.Waiting[0].Reason
			}
			if !strings.Contains(reason, tc.waiting) || (tc.waiting == "") != (len(got.Waiting) == 0) {
				t.Errorf("ReadExports(...): want waiting for %q, got %+v", tc.waiting, got.Waiting)
			}
		})
	}
}

func TestReadExportsReadsOnce(t *testing.T) {
	t.Run("reads every object once [D14][H-25]", func(t *testing.T) {
		c := twoClusters()
		exports := exportsOf(t, "key: a, jsonPath: status.url", "key: b, jsonPath: status.count", "key: c, jsonPath: spec.secretRef"+intoSecret, "key: d, jsonPath: spec.secretRef"+intoSecret)
		if _, err := ReadExports(t.Context(), exports, c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{"/Database/ns/db": 1, "/Secret/ns/s": 1}, c.reads); diff != "" {
			t.Errorf("reads: -want, +got:\n%s", diff)
		}
	})
	t.Run("tells how long to wait [D14]", func(t *testing.T) {
		got, err := ReadExports(t.Context(), exportsOf(t, "key: a, timeout: 1m, jsonPath: status.absent"), twoClusters())
		if err != nil {
			t.Fatal(err)
		}
		want := []Awaited{{Key: "a", Reason: "status.absent of Database ns/db does not exist", Timeout: time.Minute}}
		if diff := cmp.Diff(want, got.Waiting); diff != "" {
			t.Errorf("Waiting: -want, +got:\n%s", diff)
		}
	})
}

// endless is a cluster in which every object exists and is large.
type endless struct{ reads int }

func (e *endless) Get(context.Context, string, lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	e.reads++
	return &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", 1<<18), "small": "y"}}, nil
}

// TestReadExportsKeepsLittle checks that an item that exports from very many objects does not fill the memory.
func TestReadExportsKeepsLittle(t *testing.T) {
	of := func(path string, objects int) []Export {
		exports := exportsOf(t, "key: a, jsonPath: "+path)
		for i := range objects {
			from := *exports[0].FromResource
			from.Name = fmt.Sprint(i)
			one := exports[0]
			one.FromResource, one.key, one.Key = &from, []string{from.Name}, from.Name
			exports = append(exports, one)
		}
		return exports[1:]
	}
	t.Run("stops reading when a Secret is full", func(t *testing.T) {
		from := &endless{}
		_, err := ReadExports(t.Context(), of("data", 1000), from)
		if err == nil || !strings.Contains(err.Error(), "more than the 1048576") || from.reads != 4 {
			t.Errorf("after %d reads: %v", from.reads, err)
		}
	})
	t.Run("lets objects go", func(t *testing.T) {
		from, exports := &endless{}, of("small", maxObjects+1)
		if _, err := ReadExports(t.Context(), exports, from); err != nil || from.reads != maxObjects+1 {
			t.Fatalf("after %d reads: %v", from.reads, err)
		}
		again := exports[0]
		again.key = []string{"again"}
		if _, err := ReadExports(t.Context(), append(exports, again), from); err != nil || from.reads != 2*maxObjects+3 {
			t.Errorf("after %d reads: %v, want the first object to be read twice", from.reads, err)
		}
	})
}

func TestReadExportsErrors(t *testing.T) {
	boom := errors.New("boom")
	if _, err := ReadExports(t.Context(), exportsOf(t, "key: a, jsonPath: status.url"), &fakeClusters{err: boom}); !errors.Is(err, boom) || !strings.Contains(err.Error(), `export "a": get Database ns/db`) {
		t.Errorf("ReadExports(...): got %v", err)
	}
	for _, second := range []string{"key: a.b, jsonPath: status.count", "key: a, jsonPath: status.count"} {
		_, err := ReadExports(t.Context(), exportsOf(t, "key: a, jsonPath: status.url", second), twoClusters())
		if err == nil || !strings.Contains(err.Error(), "spec.config.exports.exports[1].key") || len(contract.Codes(err)) != 1 {
			t.Errorf("ReadExports(... %s): want a configuration error, got %v", second, err)
		}
	}
}

func TestEncodeExportsRefuses(t *testing.T) {
	t.Run("refuses more than a Secret can hold [D14][H-33]", func(t *testing.T) {
		_, err := EncodeExports(map[string]any{"small": "CANARY", "large": strings.Repeat("x", corev1.MaxSecretSize)})
		if err == nil || !strings.Contains(err.Error(), `the largest is "large" with 1048578 bytes`) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("EncodeExports(...): got %v", err)
		}
		if codes := contract.Codes(err); len(codes) != 1 || codes[0] != lsv1alpha1.ErrorConfigurationProblem {
			t.Errorf("Codes(err): got %v", codes)
		}
	})
	if raw, err := EncodeExports(map[string]any{}); err != nil || string(raw) != "{}" {
		t.Errorf("EncodeExports({}): got %s, %v", raw, err)
	}
}

// same always returns the same object, as a cache does.
type same struct{ obj *unstructured.Unstructured }

func (s same) Get(context.Context, string, lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	return s.obj, nil
}

func TestReadExportsChangesNothing(t *testing.T) {
	t.Run("leaves the objects alone that it reads [D14]", func(t *testing.T) {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"nested": map[string]any{"x": "y"}, "url": "u"}}}
		before := obj.DeepCopy()
		got, err := ReadExports(t.Context(), exportsOf(t, "key: a, jsonPath: status.nested", "key: a.more, jsonPath: status.url"), same{obj})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"x": "y", "more": "u"}}, got.Values); diff != "" {
			t.Errorf("Values: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Errorf("object: -before, +after:\n%s", diff)
		}
	})
}

// TestExportPathsAreBounded checks that a path that takes too long is a fault of the configuration, and that no
// evaluation outlives its call.
func TestExportPathsAreBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 800) + "{}" + strings.Repeat("}", 800)
	from := &fakeClusters{objects: map[string]string{"/Database/ns/db": `{"metadata":{"name":"db"},"status":` + deep + `}`}}
	t.Run("names the path [F5]", func(t *testing.T) {
		_, err := ReadExports(t.Context(), exportsOf(t, "key: k, jsonPath: metadata.name", "key: a, jsonPath: ..a..a"), from)
		if err == nil || len(contract.Codes(err)) != 1 || !strings.Contains(err.Error(), "spec.config.exports.exports[1]") || !strings.Contains(err.Error(), `"..a..a"`) {
			t.Errorf("ReadExports(...): got %v", err)
		}
	})
	t.Run("ends with its context [F5]", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		cancel(over)
		if _, err := ReadExports(ctx, exportsOf(t, "key: k, jsonPath: metadata.name"), from); !errors.Is(err, over) {
			t.Errorf("ReadExports(ended context): got %v", err)
		}
	})
}
