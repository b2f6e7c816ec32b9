// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestFunctionIsHandler(t *testing.T) {
	var handler Handler = HandlerFunc(func(_ context.Context, req *SyncRequest) (*SyncResponse, error) {
		return &SyncResponse{Wait: req.Item.Name}, errors.New("both")
	})
	got, err := handler.Sync(t.Context(), &SyncRequest{Item: newShopItem()})
	if got == nil || got.Wait != "web" || err == nil || err.Error() != "both" {
		t.Errorf("[R3, R42] got %+v, %v", got, err)
	}
	if _, is := handler.(Finalizer); is {
		t.Error("[R1] finalize is not optional")
	}
}

func TestResponseHasNoFunctions(t *testing.T) {
	t.Run("the types of a response have no methods that change the cluster [R25]", hasNoVerbs)
}

func hasNoVerbs(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[Handler](), reflect.TypeFor[*Builder](), reflect.TypeFor[*SyncRequest](), reflect.TypeFor[Child]()} {
		for method := range of.Methods() {
			for _, verb := range []string{"Create", "Update", "Patch", "Delete", "Apply"} {
				if strings.HasPrefix(method.Name, verb) {
					t.Errorf("%s has the verb %s", of, method.Name)
				}
			}
		}
	}
}

// fakeSteps is a FailableHandler whose steps return the given errors.
type fakeSteps struct {
	validate, children, status error

	calls []string
}

func (s *fakeSteps) Validate(context.Context, *SyncRequest) error {
	s.calls = append(s.calls, "validate")
	return s.validate
}

func (s *fakeSteps) SyncChildren(context.Context, *SyncRequest) ([]any, error) {
	s.calls = append(s.calls, "children")
	return []any{pod}, s.children
}

func (s *fakeSteps) DetermineStatus(_ context.Context, _ *SyncRequest, cause error) (any, error) {
	s.calls = append(s.calls, "status")
	return map[string]any{"cause": cause}, s.status
}

// finalizing is a FailableHandler that is also a Finalizer.
type finalizing struct{ *fakeSteps }

func (f finalizing) Finalize(context.Context, *SyncRequest) (*FinalizeResponse, error) {
	f.calls = append(f.calls, "finalize")
	return &FinalizeResponse{Retry: time.Second}, nil
}

func TestFromFailable(t *testing.T) {
	bad, worse := errors.New("bad"), errors.New("worse")
	for name, tc := range map[string]struct {
		steps fakeSteps
		calls []string
		want  *SyncResponse
		errs  []error
	}{
		"all functions succeed [R44]":                          {fakeSteps{}, []string{"validate", "children", "status"}, &SyncResponse{Status: map[string]any{"cause": error(nil)}, Children: []any{pod}}, nil},
		"a failed Validate skips SyncChildren [R44]":           {fakeSteps{validate: bad}, []string{"validate", "status"}, &SyncResponse{Status: map[string]any{"cause": bad}}, []error{bad}},
		"a failed SyncChildren does not skip SyncStatus [R44]": {fakeSteps{children: bad}, []string{"validate", "children", "status"}, &SyncResponse{Status: map[string]any{"cause": bad}}, []error{bad}},
		"a failed SyncStatus is returned [R44]":                {fakeSteps{status: worse}, []string{"validate", "children", "status"}, nil, []error{worse}},
		"two failed functions are both returned":               {fakeSteps{children: bad, status: worse}, []string{"validate", "children", "status"}, nil, []error{bad, worse}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FromFailable(&tc.steps).Sync(t.Context(), &SyncRequest{})
			if diff := cmp.Diff(tc.calls, tc.steps.calls); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(errors.Is)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (err != nil) != (len(tc.errs) > 0) {
				t.Errorf("error %v", err)
			}
			for _, want := range tc.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v hides %v", err, want)
				}
			}
		})
	}
}

func TestFromFailableKeepsTheFinalizer(t *testing.T) {
	inner := finalizing{&fakeSteps{}}
	f, is := FromFailable(inner).(Finalizer)
	if !is {
		t.Fatal("[R44] lost Finalize")
	}
	if got, err := f.Finalize(t.Context(), nil); err != nil || got.Retry != time.Second {
		t.Errorf("[Rx9] got %+v, %v", got, err)
	}
	if _, is := FromFailable(&fakeSteps{}).(Finalizer); is {
		t.Error("[R1] finalizes although the handler does not")
	}
}

func TestBuilder(t *testing.T) {
	web := &corev1.Pod{}
	got, err := NewBuilder(map[string]any{"a": 1}).Add(pod, web).Try(newPod(nil)).ResyncAfter(time.Minute).Wait("%d of %d", 1, 2).Build()
	if err != nil {
		t.Fatal(err)
	}
	want := &SyncResponse{Status: map[string]any{"a": 1}, Children: []any{pod, web, pod}, ResyncAfter: time.Minute, Wait: "1 of 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("[R45, Rx10] %s", diff)
	}
	if got, err := NewBuilder(nil).Wait("soon").Build(); err != nil || got.Wait != "soon" || got.Status != nil {
		t.Errorf("[R11, R45] got %+v, %v", got, err)
	}
}

func newPod(err error) (any, error) { return pod, err }

func TestBuilderCollectsErrors(t *testing.T) {
	bad := errors.New("bad pod")
	got, err := NewBuilder("no object").Add(pod, nil, "a: b: c").Try(newPod(bad)).Build()
	if got != nil || !errors.Is(err, bad) {
		t.Fatalf("[R45] got %+v, %v", got, err)
	}
	for _, want := range []string{"status of type string is not a JSON object", "children[1]: is nil", "children[2]: is not valid YAML"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("[R45] %q is missing in %v", want, err)
		}
	}
}

func TestValueOr(t *testing.T) {
	fresh := 0
	for name, tc := range map[string]struct {
		existing []byte
		want     string
		fresh    int
	}{
		"an existing value is returned [R34]": {[]byte("old"), "old", 0},
		"a missing value is generated [R34]":  {nil, "new", 1},
		"an empty value is generated [R34]":   {[]byte{}, "new", 1},
	} {
		t.Run(name, func(t *testing.T) {
			fresh = 0
			got, err := ValueOr(tc.existing, func() ([]byte, error) { fresh++; return []byte("new"), nil })
			if err != nil || string(got) != tc.want || fresh != tc.fresh {
				t.Errorf("got %s, %v, generated %d times", got, err, fresh)
			}
		})
	}
	if _, err := ValueOr("", func() (string, error) { return "", errors.New("no randomness") }); err == nil {
		t.Error("[R34] the error is lost")
	}
	if got, _ := ValueOr(map[string]string{"a": "b"}, nil); got["a"] != "b" {
		t.Error("[R34] generated although there is a value")
	}
}
