// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply/readiness"
)

// fakeStorage simulates the reads of StorageClasses and events.
type fakeStorage struct {
	modes    map[string]string // the modes of the classes; a missing class does not exist
	err      error             // the error of a read of a class, if any
	events   int               // the number of events which report that a claim waits for a consumer
	eventErr error

	classReads, eventReads int
	selector               string
}

func (w *testEnv) serveStorage(s *fakeStorage) {
	w.cluster.Client.Client = interceptor.NewClient(w.cluster.Client.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			s.classReads++
			mode, found := s.modes[key.Name]
			switch {
			case s.err != nil:
				return s.err
			case !found:
				return apierrors.NewNotFound(schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}, key.Name)
			}
			obj.(*unstructured.Unstructured).Object["volumeBindingMode"] = mode
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.eventReads++
			all := client.ListOptions{}
			all.ApplyOptions(opts)
			s.selector = all.Namespace + ": " + all.FieldSelector.String()
			list.(*unstructured.UnstructuredList).Items = make([]unstructured.Unstructured, s.events)
			return s.eventErr
		},
	})
}

// pendingClaim returns a claim of a StorageClass.
func pendingClaim(class string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": "ns", "name": "data", "uid": "c1"},
		"spec": map[string]any{"storageClassName": class}, "status": map[string]any{"phase": "Pending"},
	}}
}

func TestGetBinding(t *testing.T) {
	modes := map[string]string{"late": "WaitForFirstConsumer", "early": "Immediate", "plain": ""}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "storageclasses"}, "late", nil)
	for name, test := range map[string]struct {
		class                  string
		storage                fakeStorage
		want                   readiness.ClaimBinding
		classReads, eventReads int // for three checks
	}{
		"a class that waits for a consumer is read once":      {"late", fakeStorage{modes: modes}, readiness.BindingForConsumer, 1, 0},
		"a class that binds at once is read once":             {"early", fakeStorage{modes: modes}, readiness.BindingImmediate, 1, 0},
		"a class without a mode binds at once":                {"plain", fakeStorage{modes: modes}, readiness.BindingImmediate, 1, 0},
		"a claim without a class needs no read":               {"", fakeStorage{modes: modes}, readiness.BindingImmediate, 0, 0},
		"a class that does not exist yet is read again":       {"later", fakeStorage{modes: modes}, readiness.BindingUnknown, 3, 0},
		"an event counts if the class may not be read":        {"late", fakeStorage{err: forbidden, events: 1}, readiness.BindingForConsumer, 1, 3},
		"the binding is unknown without class and event":      {"late", fakeStorage{err: forbidden}, readiness.BindingUnknown, 1, 3},
		"the binding is unknown if nothing may be read":       {"late", fakeStorage{err: forbidden, events: 1, eventErr: forbidden}, readiness.BindingUnknown, 1, 3},
		"a read that fails for another reason is tried again": {"late", fakeStorage{err: errors.New("timeout")}, readiness.BindingUnknown, 3, 3},
	} {
		t.Run(name+" [F76]", func(t *testing.T) {
			w, s := newTestEnv(t), test.storage
			w.serveStorage(&s)
			for range 3 {
				if got := w.cluster.getBinding(t.Context(), pendingClaim(test.class)); got != test.want {
					t.Errorf("want %s, got %s", test.want, got)
				}
			}
			if s.classReads != test.classReads || s.eventReads != test.eventReads {
				t.Errorf("want %d and %d reads of classes and events, got %d and %d", test.classReads, test.eventReads, s.classReads, s.eventReads)
			}
			if want := "ns: involvedObject.uid=c1,reason=WaitForFirstConsumer"; s.eventReads > 0 && s.selector != want {
				t.Errorf("want events with %q, got %q", want, s.selector)
			}
		})
	}
}

func TestClassesAreReadAgainAfterTenMinutes(t *testing.T) {
	w, s := newTestEnv(t), fakeStorage{modes: map[string]string{"late": "WaitForFirstConsumer"}}
	w.serveStorage(&s)
	w.cluster.getBinding(t.Context(), pendingClaim("late"))
	s.modes["late"] = "Immediate"
	for _, want := range []readiness.ClaimBinding{readiness.BindingForConsumer, readiness.BindingImmediate} {
		w.clock.Step(classTTL/2 + time.Second)
		if got := w.cluster.getBinding(t.Context(), pendingClaim("late")); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestClassesAreBounded(t *testing.T) {
	known := classCache{}
	for i := range 3 * maxClasses {
		known.set(string(rune('a'+i)), storageClass{})
	}
	if got := len(known.all); got > maxClasses {
		t.Errorf("%d classes are stored, want at most %d", got, maxClasses)
	}
}

// TestCheckReadinessReadsTheBinding covers the way from a run to the StorageClass.
func TestCheckReadinessReadsTheBinding(t *testing.T) {
	w, s := newTestEnv(t), fakeStorage{modes: map[string]string{"late": "WaitForFirstConsumer", "early": "Immediate"}}
	w.serveStorage(&s)
	r := w.begin(false)
	for class, ready := range map[string]bool{"late": true, "early": false} {
		t.Run(class+" [F76]", func(t *testing.T) {
			if got := r.CheckReadiness(t.Context(), pendingClaim(class)); got.IsReady() != ready {
				t.Errorf("want ready %t, got %+v", ready, got)
			}
		})
	}
}
