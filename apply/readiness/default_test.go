// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStatusOf(t *testing.T) {
	crd := parsed(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  versions:
  - name: generations
    schema: {openAPIV3Schema: {properties: {status: {properties: {observedGeneration: {type: integer}}}}}}
  - name: conditions
    subresources: {status: {}}
    schema: {openAPIV3Schema: {properties: {status: {properties: {conditions: {type: array}}}}}}
  - name: other
    subresources: {status: {}}
    schema: {openAPIV3Schema: {properties: {status: {properties: {phase: {type: string}}}}}}
  - name: unknown
    subresources: {status: {}}
    schema: {openAPIV3Schema: {x-kubernetes-preserve-unknown-fields: true}}
  - name: unwritten
    schema: {openAPIV3Schema: {properties: {status: {properties: {bindings: {type: array}}}}}}
  - name: none
    subresources: {scale: {}}
    schema: {openAPIV3Schema: {properties: {spec: {}}}}
`)
	for version, want := range map[string]StatusShape{
		"generations": StatusReports, "conditions": StatusReports, "other": StatusOther, "unknown": StatusOther,
		"unwritten": StatusNone, "none": StatusNone, "absent": StatusNone,
	} {
		t.Run(version+" [F35]", func(t *testing.T) {
			if got := StatusOf(crd, version); got != want {
				t.Errorf("want %v, got %v", want, got)
			}
		})
	}
}

func TestRules(t *testing.T) {
	var asked []schema.GroupVersionKind
	rules := Rules{StatusOf: func(gvk schema.GroupVersionKind) StatusShape {
		asked = append(asked, gvk)
		return StatusNone
	}}
	if got := rules.Of(parsed(t, custom+"spec: {}}")); !got.Ready() || got.Guessed {
		t.Errorf("Of(...): a kind that has no status is ready without one, got %+v", got)
	}
	if got := rules.Of(parsed(t, deployment+"spec: {}}")); got.Ready() {
		t.Error("Of(...): the rules of built-in kinds stay")
	}
	if len(asked) != 1 || asked[0] != (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}) {
		t.Errorf("StatusOf: asked about %v", asked)
	}
}

func TestStatusOfUnknownShape(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		status string
		after  time.Duration
		want   Result
	}{
		"no status within the grace period [F35, F94]": {"spec: {}}", 4 * time.Second, Result{
			State: StateWaiting, Reason: "has no status yet; without a status, it counts as ready 10s after its creation", RecheckAfter: 6 * time.Second,
		}},
		"no status after the grace period [F35, F94]":                   {"spec: {}}", 10 * time.Second, Result{State: StateReady, Guessed: true}},
		"a status with neither conditions nor observedGeneration [F35]": {"status: {phase: Pending}}", 0, Result{State: StateReady, Guessed: true}},
		"conditions":         {"status: {conditions: [{type: Ready, status: 'True'}]}}", 0, Result{State: StateReady}},
		"observedGeneration": {"status: {observedGeneration: 2}}", 0, Result{State: StateReady}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parsed(t, custom+test.status)
			obj.SetCreationTimestamp(metav1.NewTime(created))
			for _, shape := range []StatusShape{StatusOther, StatusReports} {
				rules := Rules{Grace: 10 * time.Second, Now: created.Add(test.after), StatusOf: func(schema.GroupVersionKind) StatusShape { return shape }}
				if got := rules.Of(obj); got != test.want {
					t.Errorf("%s: want %+v, got %+v", shape, test.want, got)
				}
			}
		})
	}
}

func TestObjectWithoutStatusAndCreationTimeIsNotReady(t *testing.T) {
	if got := Of(parsed(t, custom+"spec: {}}")); got != (Result{State: StateWaiting, Reason: "has no status yet"}) {
		t.Errorf("Of(...) = %+v, want a waiting object without a status", got)
	}
}

func TestPendingClaims(t *testing.T) {
	for name, test := range map[string]struct {
		status  string
		binding ClaimBinding
		want    Result
	}{
		"a claim that is bound at once is not ready while it is pending": {
			"{phase: Pending}", BindingImmediate, Result{State: StateWaiting, Reason: "PVC is not Bound. phase: Pending"},
		},
		"a claim that waits for its first consumer is ready while it is pending":    {"{phase: Pending}", BindingForConsumer, Result{State: StateReady}},
		"a claim that waits for its first consumer is ready before it has a status": {"{}", BindingForConsumer, Result{State: StateReady}},
		"a claim that waits for its first consumer has failed when its volume is lost": {
			"{phase: Lost}", BindingForConsumer, Result{State: StateFailed, Reason: "its volume is lost"},
		},
		"a claim whose StorageClass cannot be read is checked again": {"{phase: Pending}", BindingUnknown, Result{
			State: StateWaiting, RecheckAfter: 5 * time.Second,
			Reason: "PVC is not Bound. phase: Pending; its StorageClass cannot be read, which shows whether it is bound before a Pod uses it",
		}},
		"a claim with an unknown mode is not ready while it is pending": {
			"{phase: Pending}", "Later", Result{State: StateWaiting, Reason: "PVC is not Bound. phase: Pending"},
		},
	} {
		t.Run(name+" [F76]", func(t *testing.T) {
			rules := Rules{BindingOf: func(*unstructured.Unstructured) ClaimBinding { return test.binding }}
			if got := rules.Of(parsed(t, claims+"spec: {}, status: "+test.status+"}")); got != test.want {
				t.Errorf("want %+v, got %+v", test.want, got)
			}
		})
	}
}

func TestClassOf(t *testing.T) {
	const meta = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.beta.kubernetes.io/storage-class: old}}, "
	for text, want := range map[string]string{
		claims + "spec: {}}": "", claims + "spec: {storageClassName: fast}}": "fast", meta + "spec: {storageClassName: fast}}": "old",
	} {
		if got := ClassOf(parsed(t, text)); got != want {
			t.Errorf("%s: want %q, got %q", text, want, got)
		}
	}
}

func TestReasonHasOneLine(t *testing.T) {
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
	f.Fuzz(func(t *testing.T, text string, has bool) {
		obj := parseAny(text)
		if obj == nil {
			return
		}
		shape := StatusReports
		if has {
			shape = StatusOther
		}
		got := Rules{StatusOf: func(schema.GroupVersionKind) StatusShape { return shape }}.Of(obj)
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
