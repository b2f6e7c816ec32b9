// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExpectsStatus(t *testing.T) {
	crd := parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  versions:
  - name: generations
    schema: {openAPIV3Schema: {properties: {status: {properties: {observedGeneration: {type: integer}}}}}}
  - name: conditions
    schema: {openAPIV3Schema: {properties: {status: {properties: {conditions: {type: array}}}}}}
  - name: other
    schema: {openAPIV3Schema: {properties: {status: {properties: {bindings: {type: array}}}}}}
  - name: none
    schema: {openAPIV3Schema: {properties: {spec: {}}}}
`)
	for version, want := range map[string]bool{"generations": true, "conditions": true, "other": false, "none": false, "absent": false} {
		if got := ExpectsStatus(crd, version); got != want {
			t.Errorf("ExpectsStatus(crd, %q): want %v, got %v", version, want, got)
		}
	}
}

func TestRules(t *testing.T) {
	var asked []schema.GroupVersionKind
	rules := Rules{ExpectsStatus: func(gvk schema.GroupVersionKind) bool {
		asked = append(asked, gvk)
		return false
	}}
	if got := rules.Of(parsed(t, custom+"spec: {}}")); !got.Ready() {
		t.Errorf("Of(...): a kind that expects no status is ready without one, got %+v", got)
	}
	if got := rules.Of(parsed(t, deployment+"spec: {}}")); got.Ready() {
		t.Error("Of(...): the rules of built-in kinds stay")
	}
	if len(asked) != 1 || asked[0] != (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}) {
		t.Errorf("ExpectsStatus: asked about %v", asked)
	}
}

func TestReasonIsOneLine(t *testing.T) {
	long := strings.Repeat("ä\n\t", 1000)
	got := waiting(long + "\xff\x00")
	if utf8.RuneCountInString(got.Reason) > maxReason || strings.ContainsAny(got.Reason, "\n\t\x00") || !utf8.ValidString(got.Reason) {
		t.Errorf("reason is not one bounded line: %q", got.Reason)
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{pods, custom, jobs, deployment, statefulSet, services} {
		f.Add(seed+"spec: {replicas: 1, updateStrategy: {type: OnDelete}}, status: {conditions: [{type: Ready}]}}", true)
		f.Add(seed+"spec: [], status: {phase: 7, conditions: [7], containerStatuses: [{name: 7, state: 7}]}}", false)
	}
	f.Fuzz(func(t *testing.T, text string, expects bool) {
		obj := parseAny(text)
		if obj == nil {
			return
		}
		got := Rules{ExpectsStatus: func(schema.GroupVersionKind) bool { return expects }}.Of(obj)
		if got.Ready() != (got.Reason == "") || strings.Contains(got.Reason, "\n") {
			t.Errorf("Of(...): %+v", got)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	obj := parseAny(deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2, " + available + "}}")
	b.ReportAllocs()
	for b.Loop() {
		if got := Of(obj); !got.Ready() {
			b.Fatal(got)
		}
	}
}
