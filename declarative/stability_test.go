// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

// handlerLoop simulates the deployer for one item. In each call, the handler observes the children that it returned in
// the last call.
type handlerLoop struct {
	t       *testing.T
	guard   *stability
	steady  stabilityState
	req     SyncRequest
	options Options
	// live changes the body of a child after the n-th call, as a real cluster would change it.
	live func(n int, body map[string]any)
	// again returns the children if the handler is called again with an earlier request. If it is nil, the handler
	// ignores its request, and returns the same children as in the last call.
	again    func(*SyncRequest) ([]any, error)
	repeated int // calls of again
	n        int
}

func newHandlerLoop(t *testing.T) *handlerLoop {
	t.Helper()
	l := &handlerLoop{t: t, guard: newStability(), req: SyncRequest{Item: newShopItem()}, options: Options{Children: newKinds()}, live: func(int, map[string]any) {}}
	l.options.Default()
	return l
}

// sync makes one call.
func (l *handlerLoop) sync(children ...any) stabilityResult {
	l.t.Helper()
	desired, err := l.options.ToDesired(l.req.Item, &SyncResponse{Children: children}, nil, false)
	if err != nil {
		l.t.Fatal(err)
	}
	l.n++
	req := l.req
	got := l.guard.observe(&l.steady, &req, desired, func(earlier *SyncRequest) ([]apply.Desired, error) {
		l.repeated++
		if l.again == nil {
			return desired, nil
		}
		children, err := l.again(earlier)
		if err != nil {
			return nil, err
		}
		return l.options.ToDesired(l.req.Item, &SyncResponse{Children: children}, nil, false)
	})
	observed := []*unstructured.Unstructured{}
	for _, d := range desired {
		live := d.Object.DeepCopy()
		live.SetResourceVersion(fmt.Sprint(l.n))
		live.SetGeneration(int64(l.n))
		live.Object["status"] = object{"observedGeneration": int64(l.n), "phase": "Running"}
		l.live(l.n, live.Object)
		observed = append(observed, live)
	}
	l.req.Children = NewChildren(observed...)
	return got
}

// newDeployment returns a Deployment. The text `when` becomes an annotation of the Pod template, and `args` become the
// arguments of the container.
func newDeployment(when string, args ...any) map[string]any {
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"}, "spec": object{
		"template": object{
			"metadata": object{"annotations": object{"when": when}},
			"spec":     object{"containers": []any{object{"name": "c", "args": args}}},
		},
	}}
}

func TestTimestampIsUnstable(t *testing.T) {
	l := newHandlerLoop(t)
	got := []stabilityResult{}
	for i := range 4 {
		got = append(got, l.sync(newDeployment(fmt.Sprint(i))))
	}
	path := "Deployment.apps shop/web .spec.template.metadata.annotations[when]"
	want := []stabilityResult{
		{}, // nothing to compare with, because there were no children
		{}, // the first change may have another cause
		{Paths: []string{path}, Delay: time.Second},
		{Paths: []string{path}, Delay: 2 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("[R33] %s", diff)
	}
}

func TestTheDelayDoublesUpToTenMinutes(t *testing.T) {
	l := newHandlerLoop(t)
	want, last := time.Duration(0), time.Duration(0)
	for i := range 30 {
		last = l.sync(newDeployment(fmt.Sprint(i))).Delay
		if last != want {
			t.Fatalf("[R33] call %d is delayed by %s, want %s", i, last, want)
		}
		if i > 0 {
			want = min(max(time.Second, 2*want), 10*time.Minute)
		}
	}
	if last != 10*time.Minute {
		t.Errorf("[R33] ended at %s", last)
	}
}

// TestStepsAreStable checks that a handler that returns the next child once it sees the one before is not slowed down.
func TestStepsAreStable(t *testing.T) {
	t.Run("a handler that proceeds in twelve steps is never unstable [F75]", func(t *testing.T) {
		l := newHandlerLoop(t)
		for i := range 20 {
			children := []any{}
			for n := range min(len(l.req.Children)+1, 12) {
				children = append(children, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": fmt.Sprintf("step-%02d", n)}, "data": object{"n": fmt.Sprint(n)}})
			}
			if got := l.sync(children...); got.Delay != 0 || len(got.Paths) > 0 {
				t.Fatalf("call %d: %+v", i, got)
			}
		}
	})
	t.Run("a handler that follows the observed status in each call is never unstable [F75]", func(t *testing.T) {
		l := newHandlerLoop(t)
		l.live = func(n int, body map[string]any) { body["status"] = object{"progress": fmt.Sprint("rollout ", n)} }
		for i := range 20 {
			if got := l.sync(newDeployment(fmt.Sprint(i))); got.Delay != 0 || len(got.Paths) > 0 {
				t.Fatalf("call %d: %+v", i, got)
			}
		}
	})
	t.Run("a handler that was unstable may proceed in steps [F75]", func(t *testing.T) {
		l := newHandlerLoop(t)
		for i := range 3 {
			l.sync(newDeployment(fmt.Sprint(i)))
		}
		l.live = func(n int, body map[string]any) { body["status"] = object{"progress": fmt.Sprint("rollout ", n)} }
		l.sync(newDeployment("2")) // the first call that changes what the next one observes
		if got := l.sync(newDeployment("3")); got.Delay != 0 || len(got.Paths) > 0 {
			t.Errorf("sync(...) = %+v, want no delay and no paths", got)
		}
	})
}

// TestCountersAreStable covers handlers that read a field that they set themselves. The fields that such a handler does
// not set are the same in each request, although the whole requests differ.
func TestCountersAreStable(t *testing.T) {
	counted := func(req *SyncRequest) int {
		child, _ := req.Children.Find("Deployment", "web")
		n, _ := strconv.Atoi(child.GetString("spec", "template", "metadata", "annotations", "when"))
		return n
	}
	counting := func(last int) func(*SyncRequest) []any {
		return func(req *SyncRequest) []any { return []any{newDeployment(fmt.Sprint(min(counted(req)+1, last)))} }
	}
	now := 0 // the time, which no request contains
	for name, tc := range map[string]struct {
		handler func(*SyncRequest) []any
		fails   bool // the repeated call fails
		room    int
		paths   []string // of the fields that are reported as unstable
	}{
		"counts up to 12 is never unstable":                      {handler: counting(12)},
		"counts without an end is never unstable":                {handler: counting(1 << 30)},
		"counts, and is too large to be kept, is never unstable": {handler: counting(1 << 30), room: 1},
		"cannot be called again is not unstable":                 {handler: func(*SyncRequest) []any { return []any{newDeployment(fmt.Sprint(now))} }, fails: true},
		"counts and adds the time is unstable only because of the time": {
			handler: func(req *SyncRequest) []any { return []any{newDeployment(fmt.Sprint(counted(req)+1), fmt.Sprint(now))} },
			paths:   []string{"Deployment.apps shop/web .spec.template.spec.containers[0].args[0]"},
		},
	} {
		t.Run("a handler that "+name+" [F75]", func(t *testing.T) {
			l := newHandlerLoop(t)
			if tc.room > 0 {
				l.guard.roomPerItem = tc.room
			}
			l.again = func(req *SyncRequest) ([]any, error) {
				if tc.fails {
					return nil, errors.New("the licence server does not respond")
				}
				return tc.handler(req), nil
			}
			for now = range 40 {
				got := l.sync(tc.handler(&l.req)...)
				if diff := cmp.Diff(tc.paths, got.Paths); diff != "" && (now > 1 || len(got.Paths) > 0) {
					t.Fatalf("call %d: %s", now, diff)
				}
				if len(tc.paths) == 0 && got.Delay != 0 {
					t.Fatalf("call %d is delayed by %s", now, got.Delay)
				}
			}
			if l.repeated == 0 || l.repeated > 40 {
				t.Errorf("%d of 40 calls were repeated", l.repeated)
			}
		})
	}
}

// TestOnlySuspiciousHandlersAreCalledAgain checks that a handler whose changes have a visible reason is not called more
// often.
func TestOnlySuspiciousHandlersAreCalledAgain(t *testing.T) {
	for name, call := range map[string]func(l *handlerLoop, i int) any{
		"never changes its children": func(*handlerLoop, int) any { return newDeployment("now") },
		"follows the status of a child": func(l *handlerLoop, i int) any {
			l.live = func(n int, body map[string]any) { body["status"] = object{"progress": fmt.Sprint(n)} }
			return newDeployment(fmt.Sprint(i))
		},
		"changes its children now and then": func(_ *handlerLoop, i int) any { return newDeployment(fmt.Sprint(i / 2)) },
	} {
		t.Run("a handler that "+name+" is not called again [F75]", func(t *testing.T) {
			l := newHandlerLoop(t)
			for i := range 20 {
				l.sync(call(l, i))
			}
			if l.repeated != 0 {
				t.Errorf("%d calls were repeated", l.repeated)
			}
		})
	}
}

func TestPathsOfUnstableHandlers(t *testing.T) {
	for name, tc := range map[string]struct {
		call  func(i int) []any
		later int // how much later the repeated call is
		want  []string
	}{
		"an element of a list [R33]": {
			call: func(i int) []any { return []any{newDeployment("", fmt.Sprint(i))} },
			want: []string{"Deployment.apps shop/web .spec.template.spec.containers[0].args[0]"},
		},
		"the order of a list, as of a map that is ranged over [R33]": {
			call: func(i int) []any {
				args := []any{"a", "b", "c"}
				args[0], args[1+i%2] = args[1+i%2], args[0]
				return []any{newDeployment("", args...)}
			},
			want: []string{"Deployment.apps shop/web .spec.template.spec.containers[0].args[0]", "Deployment.apps shop/web .spec.template.spec.containers[0].args[1]", "Deployment.apps shop/web .spec.template.spec.containers[0].args[2]"},
		},
		"the length of a list [R33]": {
			call: func(i int) []any { return []any{newDeployment("", make([]any, 1+i%2)...)} },
			want: []string{"Deployment.apps shop/web .spec.template.spec.containers[0].args"},
		},
		"a value of a Secret, whose path is reported [R33]": {
			call: func(i int) []any {
				return []any{object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{"password": fmt.Sprint("SECRET", i)}}}
			},
			want: []string{"Secret shop/s .stringData.password"},
		},
		"many fields, the first of which are reported": {
			call: func(i int) []any {
				data := object{}
				for key := range 20 {
					data[fmt.Sprintf("k%02d", key)] = fmt.Sprint(i)
				}
				return []any{object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "c"}, "data": data}}
			},
			want: []string{"ConfigMap shop/c .data[k00]", "ConfigMap shop/c .data[k01]", "ConfigMap shop/c .data[k02]", "ConfigMap shop/c .data[k03]", "ConfigMap shop/c .data[k04]"},
		},
		"an object that is too large to store, so that the call is repeated": {
			later: 1,
			call: func(i int) []any {
				return []any{newDeployment(strings.Repeat("x", 3000), fmt.Sprint(i))}
			},
			want: []string{"Deployment.apps shop/web .spec.template.spec.containers[0].args[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHandlerLoop(t)
			l.guard.roomPerItem = 3000
			var got stabilityResult
			for i := range 10 {
				l.again = func(*SyncRequest) ([]any, error) { return tc.call(i + tc.later), nil }
				got = l.sync(tc.call(i)...)
			}
			if diff := cmp.Diff(tc.want, got.Paths); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestStableHandlersAreNotDelayed(t *testing.T) {
	for name, call := range map[string]func(l *handlerLoop, i int) []any{
		"returns the same children [R27, R33]": func(*handlerLoop, int) []any { return []any{newDeployment("now", "a", "b")} },
		"returns the children in another order": func(_ *handlerLoop, i int) []any {
			other := object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "s"}}
			if i%2 == 0 {
				return []any{newDeployment("now"), other}
			}
			return []any{other, newDeployment("now")}
		},
		"follows the item [R33]": func(l *handlerLoop, i int) []any {
			l.req.Item.Generation = int64(i)
			return []any{newDeployment(fmt.Sprint(i))}
		},
		"follows a label of the item [R33]": func(l *handlerLoop, i int) []any {
			l.req.Item.Labels = map[string]string{"a": fmt.Sprint(i)}
			return []any{newDeployment(fmt.Sprint(i))}
		},
		"sometimes follows an observed field [R33]": func(l *handlerLoop, i int) []any {
			l.live = func(_ int, body map[string]any) { body["status"] = object{"step": fmt.Sprint(i / 2)} }
			return []any{newDeployment(fmt.Sprint(i / 2))}
		},
		"sometimes returns a new version from elsewhere [R32, R33]": func(_ *handlerLoop, i int) []any { return []any{newDeployment(fmt.Sprint(i / 3))} },
		"returns a value that was generated once [R34]": func(l *handlerLoop, i int) []any {
			child, _ := l.req.Children.Find("Deployment", "web")
			when, err := ValueOr(child.GetString("spec", "template", "metadata", "annotations", "when"), func() (string, error) { return fmt.Sprint(i), nil })
			if err != nil {
				t.Error(err)
			}
			return []any{newDeployment(when)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHandlerLoop(t)
			for i := range 40 {
				if got := l.sync(call(l, i)...); len(got.Paths) > 0 {
					t.Fatalf("call %d: %+v", i, got)
				}
			}
		})
	}
}

func TestDelayEndsWhenHandlerIsStable(t *testing.T) {
	l := newHandlerLoop(t)
	for i := range 4 {
		l.sync(newDeployment(fmt.Sprint(i)))
	}
	for range maxCalmCalls - 1 {
		l.sync(newDeployment("3"))
	}
	if got := l.sync(newDeployment("x")); got.Delay != 4*time.Second {
		t.Errorf("[R33] after a short calm: %+v", got)
	}
	for range maxCalmCalls {
		l.sync(newDeployment("x"))
	}
	if got := l.sync(newDeployment("y")); got.Delay != 0 {
		t.Errorf("[R33] after a long calm: %+v", got)
	}
	l.req.Item.Generation++
	if got := l.sync(newDeployment("z")); got.Delay != 0 || l.guard.kept != 0 {
		t.Errorf("[R33] after a change of the item: %+v", got)
	}
}

func TestStabilityLimitsMemory(t *testing.T) {
	l := newHandlerLoop(t)
	l.sync(newDeployment("a"))
	l.sync(newDeployment("a"))
	if l.guard.kept != 0 {
		t.Errorf("keeps %d bytes of a stable item", l.guard.kept)
	}
	l.guard.room, l.guard.roomPerItem = 32<<10, 2<<10
	big := strings.Repeat("x", 500)
	items := make([]stabilityState, 100)
	for i := range items {
		l.steady = stabilityState{}
		l.req.Item.UID = types.UID(fmt.Sprint(i))
		l.sync(newDeployment("a", big))
		l.sync(newDeployment("b", big))
		l.sync(newDeployment("c", big))
		items[i] = l.steady
	}
	if l.guard.kept > l.guard.room || l.guard.kept < l.guard.room/2 {
		t.Errorf("keeps %d bytes, at most %d are allowed", l.guard.kept, l.guard.room)
	}
	sum := 0
	for i := range items {
		sum += items[i].lastSize
	}
	if sum != l.guard.kept {
		t.Errorf("counts %d bytes, keeps %d", l.guard.kept, sum)
	}
	for i := range items {
		m := &memory{stability: l.guard, stabilityState: items[i]}
		m.Forget()
		m.Forget()
	}
	if l.guard.kept != 0 {
		t.Errorf("keeps %d bytes of no item", l.guard.kept)
	}
}

func TestInputsExcludeFieldsOfHandler(t *testing.T) {
	l := newHandlerLoop(t)
	desired, err := l.options.ToDesired(l.req.Item, &SyncResponse{Children: []any{newDeployment("now")}}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	live := func(change func(map[string]any)) fingerprint {
		o := &unstructured.Unstructured{Object: newDeployment("before")}
		o.Object["status"] = object{"phase": "x"}
		change(o.Object)
		return hashInputs(&SyncRequest{Item: l.req.Item, Children: NewChildren(o)}, desired)
	}
	base := live(func(map[string]any) {})
	for name, tc := range map[string]struct {
		change func(map[string]any)
		same   bool
	}{
		"a field of the handler":               {func(o map[string]any) { o["spec"] = newDeployment("other")["spec"] }, true},
		"the resourceVersion":                  {func(o map[string]any) { o["metadata"].(map[string]any)["resourceVersion"] = "7" }, true},
		"the generation":                       {func(o map[string]any) { o["metadata"].(map[string]any)["generation"] = int64(7) }, true},
		"the status":                           {func(o map[string]any) { o["status"] = object{"phase": "y"} }, false},
		"a field of another manager":           {func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = int64(3) }, false},
		"an annotation of another manager":     {func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = object{"a": "b"} }, false},
		"the observedGeneration of the status": {func(o map[string]any) { o["status"].(map[string]any)["observedGeneration"] = int64(7) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if same := live(tc.change) == base; same != tc.same {
				t.Errorf("[R33] same inputs: %v", same)
			}
		})
	}
}

func BenchmarkStability(b *testing.B) {
	guard := newStability()
	o := Options{Children: newKinds()}
	o.Default()
	children := []any{}
	live := []*unstructured.Unstructured{}
	for i := range 5 {
		child := newDeployment("now", "a", "b")
		child["metadata"] = object{"name": fmt.Sprint("d", i), "namespace": "shop"}
		children = append(children, child)
		live = append(live, &unstructured.Unstructured{Object: child})
	}
	req := &SyncRequest{Item: newShopItem(), Children: NewChildren(live...)}
	var desired []apply.Desired
	b.Run("Desired", func(b *testing.B) {
		for b.Loop() {
			var err error
			if desired, err = o.ToDesired(req.Item, &SyncResponse{Children: children}, nil, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("observe", func(b *testing.B) {
		known := &stabilityState{}
		for b.Loop() {
			guard.observe(known, req, desired, nil)
		}
	})
}
