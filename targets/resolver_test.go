// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets"
)

const canary = "CANARY-4711"

// secretReader is a reader of secrets without a cache. It counts the reads.
type secretReader struct {
	client.Reader
	gets    atomic.Int32
	mu      sync.Mutex
	secrets map[types.NamespacedName]map[string]string
	err     error
}

func (r *secretReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	r.gets.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	data, exists := r.secrets[key]
	secret, isSecret := obj.(*corev1.Secret)
	if !isSecret || !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret.Data = map[string][]byte{}
	for name, value := range data {
		secret.Data[name] = []byte(value)
	}
	return nil
}

func (r *secretReader) set(data map[string]string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.secrets = err, nil
	if data != nil {
		r.secrets = map[types.NamespacedName]map[string]string{{Namespace: "garden", Name: "creds"}: data}
	}
}

func newTestResolver(data map[string]string) (*targets.Resolver, *secretReader, *clocktesting.FakePassiveClock) {
	reader := &secretReader{}
	reader.set(data, nil)
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return targets.NewResolver(reader, clk, 0), reader, clk
}

func newTarget(secret, key string) *lsv1alpha1.Target {
	return &lsv1alpha1.Target{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "cluster-1"},
		Spec:       lsv1alpha1.TargetSpec{SecretRef: &lsv1alpha1.LocalSecretReference{Name: secret, Key: key}},
	}
}

func newInlineTarget(config string) *lsv1alpha1.Target {
	t := newTarget("", "")
	t.Spec = lsv1alpha1.TargetSpec{Configuration: lsv1alpha1.NewAnyJSONPointer([]byte(config))}
	return t
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		target *lsv1alpha1.Target
		data   map[string]string
		want   string
		gets   int32
	}{
		"an inline configuration":                       {target: newInlineTarget(`{"a": 1}`), want: `{"a": 1}`},
		"a Target without a configuration and a secret": {target: &lsv1alpha1.Target{}},
		"a key to raw bytes":                            {newTarget("creds", "a.b"), map[string]string{"a.b": "  not: [yaml", "o": "x"}, "  not: [yaml", 1},
		"a key to an empty value":                       {newTarget("creds", "k"), map[string]string{"k": ""}, "", 1},
		"a secret without a key to one JSON object": {
			newTarget("creds", ""),
			map[string]string{"text": "hello", "map": "a: 1\nb: [x, {z: true}]\n", "json": `{"c":null}`, "empty": ""},
			`{"empty":null,"json":{"c":null},"map":{"a":1,"b":["x",{"z":true}]},"text":"hello"}`, 1,
		},
		"an empty secret without a key": {newTarget("creds", ""), map[string]string{}, `{}`, 1},
		"a secret beside the configuration null": {
			func() *lsv1alpha1.Target {
				both := newTarget("creds", "k")
				both.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(" null "))
				return both
			}(), map[string]string{"k": "v"}, "v", 1,
		},
	}
	for name, tc := range cases {
		t.Run("resolves "+name, func(t *testing.T) {
			r, reader, _ := newTestResolver(tc.data)
			before := tc.target.DeepCopy()
			got, err := r.Resolve(t.Context(), tc.target)
			if err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			if got.Content != tc.want || got.Target != tc.target {
				t.Errorf("Resolve() = %q of %p, want %q of %p", got.Content, got.Target, tc.want, tc.target)
			}
			if reader.gets.Load() != tc.gets {
				t.Errorf("%d secret reads, want %d", reader.gets.Load(), tc.gets)
			}
			if diff := cmp.Diff(before, tc.target); diff != "" {
				t.Errorf("the target was changed:\n%s", diff)
			}
		})
	}
	t.Run("returns nil for nil", func(t *testing.T) {
		r, _, _ := newTestResolver(nil)
		if got, err := r.Resolve(t.Context(), nil); got != nil || err != nil {
			t.Errorf("Resolve(nil) = %v, %v, want nil, nil", got, err)
		}
	})
}

func TestResolveErrors(t *testing.T) {
	both := newTarget("creds", "")
	both.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"token":"` + canary + `"}`))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "creds", errors.New("no"))
	unserved := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "secrets"}, "creds", "404 page not found", 0, true)
	cases := map[string]struct {
		target *lsv1alpha1.Target
		data   map[string]string
		err    error
		reason targets.Reason
		config bool
		text   []string
	}{
		"a configuration and a secret":              {both, nil, nil, targets.ReasonSpecInvalid, true, []string{"spec.config", "spec.secretRef"}},
		"a reference without a name":                {newTarget("", "k"), nil, nil, targets.ReasonSpecInvalid, true, []string{"spec.secretRef.name"}},
		"a missing secret":                          {newTarget("creds", ""), nil, nil, targets.ReasonSecretMissing, false, []string{"creds", "not found"}},
		"a secret with another name":                {newTarget("other", ""), map[string]string{}, nil, targets.ReasonSecretMissing, false, []string{"other"}},
		"a forbidden secret":                        {newTarget("creds", ""), nil, forbidden, targets.ReasonSecretUnreadable, false, []string{"creds", "forbidden"}},
		"a 404 that does not name the secret [F70]": {newTarget("creds", ""), nil, unserved, targets.ReasonSecretUnreadable, false, []string{"creds"}},
		"a missing response":                        {newTarget("creds", ""), nil, context.DeadlineExceeded, targets.ReasonSecretUnreadable, false, []string{"creds"}},
		"a missing key":                             {newTarget("creds", "kubeconfig"), map[string]string{"k": canary}, nil, targets.ReasonContentInvalid, true, []string{"creds", `"kubeconfig"`}},
		"a value that is not YAML":                  {newTarget("creds", ""), map[string]string{"ok": "x", "bad": canary + ": [" + canary}, nil, targets.ReasonContentInvalid, true, []string{"creds", `"bad"`}},
		"an unknown YAML alias":                     {newTarget("creds", ""), map[string]string{"bad": "*" + canary}, nil, targets.ReasonContentInvalid, true, []string{`"bad"`}},
		"bytes that are not text":                   {newTarget("creds", ""), map[string]string{"bad": canary + "\xff\xfe"}, nil, targets.ReasonContentInvalid, true, []string{`"bad"`}},
	}
	for name, tc := range cases {
		t.Run("returns an error for "+name, func(t *testing.T) {
			r, reader, _ := newTestResolver(nil)
			reader.set(tc.data, tc.err)
			got, err := r.Resolve(t.Context(), tc.target)
			fault := &targets.ResolveError{}
			if got != nil || !errors.As(err, &fault) {
				t.Fatalf("Resolve() = %v, %v, want a ResolveError", got, err)
			}
			if fault.Reason != tc.reason || fault.IsConfigError() != tc.config || fault.Target != client.ObjectKeyFromObject(tc.target) {
				t.Errorf("fault = %+v, want reason %s, config fault %t", fault, tc.reason, tc.config)
			}
			if tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("error %v does not wrap its cause", err)
			}
			for _, part := range append(tc.text, "garden/cluster-1") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", fault), fmt.Sprintf("%#v", fault)} {
				if strings.Contains(text, canary) {
					t.Errorf("error %q shows the content", text)
				}
			}
		})
	}
}

// resolveWant resolves a Target. It compares the content, and the number of reads so far, with the expected values.
func resolveWant(t *testing.T, r *targets.Resolver, reader *secretReader, want string, gets int32) {
	t.Helper()
	got, err := r.Resolve(t.Context(), newTarget("creds", "k"))
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	if got.Content != want || reader.gets.Load() != gets {
		t.Errorf("content %q after %d reads, want %q after %d", got.Content, reader.gets.Load(), want, gets)
	}
}

func TestResolveReadsOncePerAge(t *testing.T) {
	r, reader, clk := newTestResolver(map[string]string{"k": "old"})
	resolveWant(t, r, reader, "old", 1)
	reader.set(map[string]string{"k": "new"}, nil)
	clk.SetTime(clk.Now().Add(time.Minute - time.Second))
	resolveWant(t, r, reader, "old", 1)
	clk.SetTime(clk.Now().Add(time.Second))
	resolveWant(t, r, reader, "new", 2)

	t.Run("reads another key of the same secret without a request", func(t *testing.T) {
		if got, err := r.Resolve(t.Context(), newTarget("creds", "")); err != nil || got.Content != `{"k":"new"}` || reader.gets.Load() != 2 {
			t.Errorf("Resolve() = %v, %v after %d reads", got, err, reader.gets.Load())
		}
	})
	t.Run("reads a secret with the same name in another namespace", func(t *testing.T) {
		other := newTarget("creds", "k")
		other.Namespace = "other"
		if got, err := r.Resolve(t.Context(), other); err == nil {
			t.Errorf("Resolve() = %v, want an error", got)
		}
	})
}

func TestResolveWithoutCache(t *testing.T) {
	_, reader, clk := newTestResolver(map[string]string{"k": "v"})
	r := targets.NewResolver(reader, clk, -1)
	resolveWant(t, r, reader, "v", 1)
	resolveWant(t, r, reader, "v", 2)
}

func TestResolverForget(t *testing.T) {
	r, reader, _ := newTestResolver(map[string]string{"k": "old"})
	name := client.ObjectKeyFromObject(newTarget("creds", "k"))
	r.Forget(name)
	resolveWant(t, r, reader, "old", 1)
	reader.set(map[string]string{"k": "new"}, nil)
	r.Forget(types.NamespacedName{Namespace: "garden", Name: "unknown"})
	resolveWant(t, r, reader, "old", 1)
	r.Forget(name)
	resolveWant(t, r, reader, "new", 2)
}

func TestFailedSecretIsReadAgain(t *testing.T) {
	steps := map[string]struct {
		data map[string]string
		err  error
	}{
		"a missing secret":     {nil, nil},
		"an unreadable secret": {nil, context.DeadlineExceeded},
		"a missing key":        {map[string]string{"x": "y"}, nil},
	}
	for name, step := range steps {
		t.Run("reads the secret again after "+name, func(t *testing.T) {
			r, reader, _ := newTestResolver(nil)
			reader.set(step.data, step.err)
			if _, err := r.Resolve(t.Context(), newTarget("creds", "k")); err == nil {
				t.Fatal("Resolve() gives no error")
			}
			reader.set(map[string]string{"k": "repaired"}, nil)
			resolveWant(t, r, reader, "repaired", 2)
		})
	}
}

func TestResolveConcurrently(t *testing.T) {
	r, _, _ := newTestResolver(map[string]string{"k": "v"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				got, err := r.Resolve(t.Context(), newTarget("creds", "k"))
				if err != nil || got.Content != "v" {
					t.Errorf("Resolve() = %v, %v", got, err)
				}
				r.Forget(client.ObjectKeyFromObject(got.Target))
			}
		})
	}
	wg.Wait()
}
