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

func TestGetStatusShape(t *testing.T) {
	crd := parseObject(t, `
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
			if got := GetStatusShape(crd, version); got != want {
				t.Errorf("want %v, got %v", want, got)
			}
		})
	}
}

func TestRulesCheckCustomKinds(t *testing.T) {
	var asked []schema.GroupVersionKind
	rules := Rules{GetStatusShape: func(gvk schema.GroupVersionKind) StatusShape {
		asked = append(asked, gvk)
		return StatusNone
	}}
	if got := rules.CheckObject(parseObject(t, custom+"spec: {}}")); !got.IsReady() || got.IsUncertain {
		t.Errorf("Of(...): a kind that has no status is ready without one, got %+v", got)
	}
	if got := rules.CheckObject(parseObject(t, deployment+"spec: {}}")); got.IsReady() {
		t.Error("Of(...): the rules of built-in kinds stay")
	}
	if len(asked) != 1 || asked[0] != (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}) {
		t.Errorf("StatusOf: asked about %v", asked)
	}
}

func TestGetStatusShapeOfUnknownShape(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		status string
		after  time.Duration
		want   Result
	}{
		"no status within the grace period [F35, F94]": {"spec: {}}", 4 * time.Second, Result{
			State: StateWaiting, Message: "has no status yet; without a status, it counts as ready 10s after its creation", RecheckAfter: 6 * time.Second,
		}},
		"no status after the grace period [F35, F94]":                   {"spec: {}}", 10 * time.Second, Result{State: StateReady, IsUncertain: true}},
		"a status with neither conditions nor observedGeneration [F35]": {"status: {phase: Pending}}", 0, Result{State: StateReady, IsUncertain: true}},
		"conditions":         {"status: {conditions: [{type: Ready, status: 'True'}]}}", 0, Result{State: StateReady}},
		"observedGeneration": {"status: {observedGeneration: 2}}", 0, Result{State: StateReady}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parseObject(t, custom+test.status)
			obj.SetCreationTimestamp(metav1.NewTime(created))
			for _, shape := range []StatusShape{StatusOther, StatusReports} {
				rules := Rules{Grace: 10 * time.Second, Now: created.Add(test.after), GetStatusShape: func(schema.GroupVersionKind) StatusShape { return shape }}
				if got := rules.CheckObject(obj); got != test.want {
					t.Errorf("%s: want %+v, got %+v", shape, test.want, got)
				}
			}
		})
	}
}

func TestObjectWithoutStatusAndCreationTimeIsNotReady(t *testing.T) {
	if got := CheckObject(parseObject(t, custom+"spec: {}}")); got != (Result{State: StateWaiting, Message: "has no status yet"}) {
		t.Errorf("Of(...) = %+v, want a waiting object without a status", got)
	}
}

func TestPendingClaimsDependOnTheBinding(t *testing.T) {
	for name, test := range map[string]struct {
		status  string
		binding ClaimBinding
		want    Result
	}{
		"a claim that is bound at once is not ready while it is pending": {
			"{phase: Pending}", BindingImmediate, Result{State: StateWaiting, Message: "PVC is not Bound. phase: Pending"},
		},
		"a claim that waits for its first consumer is ready while it is pending":    {"{phase: Pending}", BindingForConsumer, Result{State: StateReady}},
		"a claim that waits for its first consumer is ready before it has a status": {"{}", BindingForConsumer, Result{State: StateReady}},
		"a claim that waits for its first consumer has failed when its volume is lost": {
			"{phase: Lost}", BindingForConsumer, Result{State: StateFailed, Message: "its volume is lost"},
		},
		"a claim whose StorageClass cannot be read is checked again": {"{phase: Pending}", BindingUnknown, Result{
			State: StateWaiting, RecheckAfter: 5 * time.Second,
			Message: "PVC is not Bound. phase: Pending; its StorageClass cannot be read, which shows whether it is bound before a Pod uses it",
		}},
		"a claim with an unknown mode is not ready while it is pending": {
			"{phase: Pending}", "Later", Result{State: StateWaiting, Message: "PVC is not Bound. phase: Pending"},
		},
	} {
		t.Run(name+" [F76]", func(t *testing.T) {
			rules := Rules{GetBinding: func(*unstructured.Unstructured) ClaimBinding { return test.binding }}
			if got := rules.CheckObject(parseObject(t, claims+"spec: {}, status: "+test.status+"}")); got != test.want {
				t.Errorf("want %+v, got %+v", test.want, got)
			}
		})
	}
}

func TestGetClassName(t *testing.T) {
	const meta = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.beta.kubernetes.io/storage-class: old}}, "
	for text, want := range map[string]string{
		claims + "spec: {}}": "", claims + "spec: {storageClassName: fast}}": "fast", meta + "spec: {storageClassName: fast}}": "old",
	} {
		if got := GetClassName(parseObject(t, text)); got != want {
			t.Errorf("%s: want %q, got %q", text, want, got)
		}
	}
}

func TestReasonHasOneLine(t *testing.T) {
	long := strings.Repeat("ä\n\t", 1000)
	got := newWaiting(long + "\xff\x00")
	if utf8.RuneCountInString(got.Message) > maxReason || strings.ContainsAny(got.Message, "\n\t\x00") || !utf8.ValidString(got.Message) {
		t.Errorf("reason is not one bounded line: %q", got.Message)
	}
}

func FuzzCheckObject(f *testing.F) {
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
		got := Rules{GetStatusShape: func(schema.GroupVersionKind) StatusShape { return shape }}.CheckObject(obj)
		if got.IsReady() != (got.Message == "") || strings.Contains(got.Message, "\n") {
			t.Errorf("Of(...): %+v", got)
		}
	})
}

func BenchmarkCheckObject(b *testing.B) {
	obj := parseAny(deployment + "spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2, " + available + "}}")
	b.ReportAllocs()
	for b.Loop() {
		if got := CheckObject(obj); !got.IsReady() {
			b.Fatal(got)
		}
	}
}
