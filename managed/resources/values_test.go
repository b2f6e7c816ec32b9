// SPDX-License-Identifier: Apache-2.0

package resources

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/readiness"
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

func newTwoClusters() *fakeClusters {
	return &fakeClusters{objects: map[string]string{
		"/Database/ns/db": `{"metadata":{"name":"db"},"spec":{"secretRef":{"name":"s"},"farRef":{"name":"s","namespace":"far"},"badRef":{"name":7},"badNamespace":{"name":"s","namespace":7},"labels":{"a.b":"c"}},
			"status":{"url":"u","count":3,"null":null,"empty":"","nested":{"x":{"y":1}},"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}}`,
		"/Secret/ns/s":         `{"data":{"password":"cA=="}}`,
		"/Secret/far/s":        `{"data":{"password":"ZmFy"}}`,
		"other/Database/ns/db": `{"status":{"url":"other"}}`,
	}}
}

// parseExports decodes exports from the Database ns/db.
func parseExports(t *testing.T, exports ...string) []Export {
	t.Helper()
	for i := range exports {
		exports[i] = "{fromResource: {apiVersion: example.com/v1, kind: Database, name: db, namespace: ns}, " + exports[i] + "}"
	}
	config, err := decode(t, "exports: {exports: ["+strings.Join(exports, ", ")+"]}", Options{})
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
		"NoReference":        {exports: []string{"key: a, jsonPath: status.url" + intoSecret}, want: `{}`, waiting: "status.url of Database ns/db is not a reference to an object"},
		"ReferenceNoName":    {exports: []string{"key: a, jsonPath: spec.badRef" + intoSecret}, want: `{}`, waiting: "is not a reference"},
		"ReferenceNamespace": {exports: []string{"key: a, jsonPath: spec.badNamespace" + intoSecret}, want: `{}`, waiting: "is not a reference"},
		"ReferenceToNothing": {exports: []string{"key: a, targetName: other, jsonPath: status.url" + intoSecret}, want: `{}`, waiting: "is not a reference"},
		"ReferenceGone":      {exports: []string{"key: a, jsonPath: spec.secretRef, fromObjectRef: {apiVersion: v1, kind: ConfigMap, jsonPath: data.x}"}, want: `{}`, waiting: "ConfigMap ns/s does not exist"},
		"ReferenceNoValue":   {exports: []string{"key: a, jsonPath: spec.secretRef, fromObjectRef: {apiVersion: v1, kind: Secret, jsonPath: data.x}"}, want: `{}`, waiting: "data.x of Secret ns/s does not exist"},
	} {
		t.Run(name+" [D14]", func(t *testing.T) {
			got, waiting, err := readExports(t.Context(), parseExports(t, tc.exports...), newTwoClusters().Get, nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(got)
			if err != nil || string(raw) != tc.want {
				t.Errorf("readExports(...): want %s, got %s, %v", tc.want, raw, err)
			}
			reason := ""
			if len(waiting) == 1 && waiting[0].key == "a" {
				reason = waiting[0].reason
			}
			if !strings.Contains(reason, tc.waiting) || (tc.waiting == "") != (len(waiting) == 0) {
				t.Errorf("readExports(...): want waiting for %q, got %+v", tc.waiting, waiting)
			}
		})
	}
}

func TestReadExportsReadsOnce(t *testing.T) {
	t.Run("each object is read once [D14][H-25]", func(t *testing.T) {
		c := newTwoClusters()
		exports := parseExports(t, "key: a, jsonPath: status.url", "key: b, jsonPath: status.count", "key: c, jsonPath: spec.secretRef"+intoSecret, "key: d, jsonPath: spec.secretRef"+intoSecret)
		if _, _, err := readExports(t.Context(), exports, c.Get, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{"/Database/ns/db": 1, "/Secret/ns/s": 1}, c.reads); diff != "" {
			t.Errorf("reads: -want, +got:\n%s", diff)
		}
	})
	t.Run("an object that is finished and gone is reported without a wait [F91]", func(t *testing.T) {
		c := newTwoClusters()
		c.err = readiness.ErrFinished
		_, waiting, err := readExports(t.Context(), parseExports(t, "key: a, jsonPath: status.url"), c.Get, nil)
		if err != nil || len(waiting) != 1 || waiting[0].done == nil || waiting[0].reason != "Database ns/db has finished and no longer exists" {
			t.Errorf("readExports(...) = %+v, %v, want one object that has finished", waiting, err)
		}
	})
	t.Run("the error contains the time to wait [D14]", func(t *testing.T) {
		_, waiting, err := readExports(t.Context(), parseExports(t, "key: a, timeout: 1m, jsonPath: status.absent"), newTwoClusters().Get, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []missingExport{{key: "a", reason: "status.absent of Database ns/db does not exist", timeout: time.Minute}}
		if diff := cmp.Diff(want, waiting, cmp.AllowUnexported(missingExport{})); diff != "" {
			t.Errorf("Waiting: -want, +got:\n%s", diff)
		}
	})
}

// fakeEndless is a cluster in which every object exists and is large.
type fakeEndless struct{ reads int }

func (e *fakeEndless) Get(context.Context, string, lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	e.reads++
	return &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", 1<<18), "small": "y"}}, nil
}

// TestReadExportsLimitsMemory checks that an item that exports from very many objects does not fill the memory.
func TestReadExportsLimitsMemory(t *testing.T) {
	of := func(path string, objects int) []Export {
		exports := parseExports(t, "key: a, jsonPath: "+path)
		for i := range objects {
			from := *exports[0].FromResource
			from.Name = fmt.Sprint(i)
			one := exports[0]
			one.FromResource, one.key, one.Key = &from, []string{from.Name}, from.Name
			exports = append(exports, one)
		}
		return exports[1:]
	}
	t.Run("reading stops when the export Secret is full", func(t *testing.T) {
		from := &fakeEndless{}
		_, _, err := readExports(t.Context(), of("data", 1000), from.Get, nil)
		if err == nil || !strings.Contains(err.Error(), "more than the 1048576") || from.reads != 4 {
			t.Errorf("after %d reads: %v", from.reads, err)
		}
	})
	t.Run("objects are not kept after they were read", func(t *testing.T) {
		from, exports := &fakeEndless{}, of("small", maxObjects+1)
		if _, _, err := readExports(t.Context(), exports, from.Get, nil); err != nil || from.reads != maxObjects+1 {
			t.Fatalf("after %d reads: %v", from.reads, err)
		}
		again := exports[0]
		again.key = []string{"again"}
		if _, _, err := readExports(t.Context(), append(exports, again), from.Get, nil); err != nil || from.reads != 2*maxObjects+3 {
			t.Errorf("after %d reads: %v, want the first object to be read twice", from.reads, err)
		}
	})
}

func TestReadExportsErrors(t *testing.T) {
	boom := errors.New("boom")
	if _, _, err := readExports(t.Context(), parseExports(t, "key: a, jsonPath: status.url"), (&fakeClusters{err: boom}).Get, nil); !errors.Is(err, boom) || !strings.Contains(err.Error(), `export "a": get Database ns/db`) {
		t.Errorf("readExports(...): got %v", err)
	}
	for _, second := range []string{"key: a.b, jsonPath: status.count", "key: a, jsonPath: status.count"} {
		_, _, err := readExports(t.Context(), parseExports(t, "key: a, jsonPath: status.url", second), newTwoClusters().Get, nil)
		if err == nil || !strings.Contains(err.Error(), "spec.config.exports.exports[1].key") || len(contract.ErrorCodes(err)) != 1 {
			t.Errorf("readExports(... %s): want a configuration error, got %v", second, err)
		}
	}
}

// fakeSingle is a cluster that always returns the same object, as a cache does.
type fakeSingle struct{ obj *unstructured.Unstructured }

func (s fakeSingle) Get(context.Context, string, lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	return s.obj, nil
}

func TestReadExportsDoesNotChangeObjects(t *testing.T) {
	t.Run("reading exports does not change the objects [D14]", func(t *testing.T) {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"nested": map[string]any{"x": "y"}, "url": "u"}}}
		before := obj.DeepCopy()
		got, _, err := readExports(t.Context(), parseExports(t, "key: a, jsonPath: status.nested", "key: a.more, jsonPath: status.url"), fakeSingle{obj}.Get, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"x": "y", "more": "u"}}, got); diff != "" {
			t.Errorf("Values: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
			t.Errorf("object: -before, +after:\n%s", diff)
		}
	})
}

// TestExportPathsLimitTheirWork checks that the configuration is invalid if the evaluation of a path takes too long,
// and that no evaluation continues after its call has returned.
func TestExportPathsLimitTheirWork(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 800) + "{}" + strings.Repeat("}", 800)
	from := &fakeClusters{objects: map[string]string{"/Database/ns/db": `{"metadata":{"name":"db"},"status":` + deep + `}`}}
	t.Run("the error names the path [F5]", func(t *testing.T) {
		_, _, err := readExports(t.Context(), parseExports(t, "key: k, jsonPath: metadata.name", "key: a, jsonPath: ..a..a"), from.Get, nil)
		if err == nil || len(contract.ErrorCodes(err)) != 1 || !strings.Contains(err.Error(), "spec.config.exports.exports[1]") || !strings.Contains(err.Error(), `"..a..a"`) {
			t.Errorf("readExports(...): got %v", err)
		}
	})
	t.Run("the evaluation stops when the context ends [F5]", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		cancel(over)
		if _, _, err := readExports(ctx, parseExports(t, "key: k, jsonPath: metadata.name"), from.Get, nil); !errors.Is(err, over) {
			t.Errorf("readExports(ended context): got %v", err)
		}
	})
}

// TestReadExportsFromValues checks exports without fromResource, which the deployer must allow.
func TestReadExportsFromValues(t *testing.T) {
	document := map[string]any{"Values": map[string]any{"host": "example.com"}}
	for name, tc := range map[string]struct {
		export  string
		want    string
		wantErr string
	}{
		"Value":        {"key: a, jsonPath: .Values.host", `{"a":"example.com"}`, ""},
		"Missing":      {"key: a, jsonPath: .Values.port", "", "spec.config.exports.exports[0].jsonPath: .Values.port of the values of the deployer does not exist"},
		"Reference":    {"key: a, jsonPath: .Values.host" + intoSecret, "", "spec.config.exports.exports[0].fromResource: required, because"},
		"Target":       {"key: a, jsonPath: .Values.host, targetName: other", "", "spec.config.exports.exports[0].fromResource: required, because"},
		"Object [D14]": {"key: a, jsonPath: status.url, fromResource: {apiVersion: example.com/v1, kind: Database, name: db, namespace: ns}", `{"a":"u"}`, ""},
		"NoPath":       {"key: a", "", "spec.config.exports.exports[0].jsonPath"},
		"BrokenSource": {"key: a, jsonPath: a, fromResource: {}", "", "spec.config.exports.exports[0].fromResource.apiVersion"},
	} {
		t.Run(name+" [D18]", func(t *testing.T) {
			config, err := decode(t, "exports: {exports: [{"+tc.export+"}]}", Options{ExportValues: true})
			var got map[string]any
			if err == nil {
				got, _, err = readExports(t.Context(), config.Exports, newTwoClusters().Get, document)
			}
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(contract.ErrorCodes(err)) != 1 {
					t.Errorf("want a configuration error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := json.Marshal(got); err != nil || string(raw) != tc.want {
				t.Errorf("readExports(...): want %s, got %s, %v", tc.want, raw, err)
			}
		})
	}
	t.Run("the error names the field of another list", func(t *testing.T) {
		_, err := PrepareExports("exportsFromManifests", []ExportSpec{{}}, Options{})
		if err == nil || !strings.Contains(err.Error(), "spec.config.exportsFromManifests[0].key") {
			t.Errorf("PrepareExports(...): got %v", err)
		}
	})
}
