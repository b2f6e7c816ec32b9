// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// config is the configuration of the items in these tests.
type config struct{ Word string }

// newExternal returns an External whose Reconcile is f.
func newExternal(f func(ctx context.Context) error) Resource {
	return External(ExternalSpec{Reconcile: f})
}

func TestContextOutsideRun(t *testing.T) {
	ctx := t.Context()
	calls := map[string]func() error{
		"From":          func() error { _, err := getNodeRun(ctx); return err },
		"Item":          func() error { _, err := Item(ctx); return err },
		"Config":        func() error { _, err := Config[config](ctx); return err },
		"Client":        func() error { _, err := Client(ctx); return err },
		"Output":        func() error { _, err := Output[string](ctx, "a"); return err },
		"Outputs":       func() error { _, err := Outputs[string](ctx, "a"); return err },
		"SetOutput":     func() error { return SetOutput(ctx, 1) },
		"Name":          func() error { _, err := Name(ctx, "a"); return err },
		"Element":       func() error { _, err := Element[string](ctx); return err },
		"ApplyPrepared": func() error { return ApplyPrepared(ctx) },
		"ObjectsReady":  func() error { _, err := CheckObjectsReady(ctx); return err },
		"Versioned":     func() error { _, err := Versioned(newUnnamedConfigMap).(Preparer).Prepare(ctx); return err },
	}
	for name, call := range calls {
		t.Run(name+" returns an error outside of a run [Y33]", func(t *testing.T) {
			if err := call(); !errors.Is(err, ErrNoRun) {
				t.Errorf("error = %v, want %v", err, ErrNoRun)
			}
		})
	}
	if Instance(ctx) != "" || !reflect.DeepEqual(Log(ctx), logr.FromContextOrDiscard(ctx)) {
		t.Error("Instance or Log invent something")
	}
}

func TestContext(t *testing.T) {
	target := fake.NewClientBuilder().WithObjects(newConfigMap("there", nil)).Build()
	var seen []string
	read := newExternal(func(ctx context.Context) error {
		n, err := getNodeRun(ctx)
		if err != nil {
			return err
		}
		item, _ := Item(ctx)
		item.Name = "changed" // has no effect, because Item returns a copy
		c, err := Config[config](ctx)
		if err != nil {
			return err
		}
		api, err := Client(ctx)
		if err != nil {
			return err
		}
		var there corev1.ConfigMap
		if err := api.Get(ctx, client.ObjectKey{Namespace: "default", Name: "there"}, &there); err != nil {
			return err
		}
		seen = append(seen, Component(ctx), Instance(ctx), n.run.item.Name, c.Word, there.Name)
		return nil
	})
	g := mustBuild(t, NewBuilder().Add("reader", read))
	t.Run("the context contains the item, the configuration and a client of the target [Y33, Y34]", func(t *testing.T) {
		w, _ := newRun(g, newItemWithConfig("a", `{"Word":"hi"}`), newFakeSession(), target, logr.Discard(), 1).visitAll(t.Context())
		if diff := cmp.Diff([]string{"reader", "", "a", "hi", "there"}, seen); diff != "" || !w.isReady() {
			t.Error(diff, w.err())
		}
	})
	t.Run("without a target there is no client [Y34]", func(t *testing.T) {
		w := visitItem(t, g, newItemWithConfig("a", `{"Word":"hi"}`), newFakeSession())
		if diff := cmp.Diff([]string{"reader Failed component reader needs a target cluster, but the deploy item has no target"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("an unknown field of the configuration is an error [Y33]", func(t *testing.T) {
		w := visitItem(t, g, newItemWithConfig("a", `{"Wort":"hi"}`), newFakeSession())
		if w.err() == nil || !strings.Contains(w.err().Error(), `unknown field "Wort"`) {
			t.Error(w.err())
		}
	})
}

func TestOutputs(t *testing.T) {
	ask := func(name string, out *string) Resource {
		return newExternal(func(ctx context.Context) error {
			var err error
			*out, err = Output[string](ctx, name)
			return err
		})
	}
	leave := newExternal(func(ctx context.Context) error {
		return errors.Join(SetOutput(ctx, "early"), SetOutput(ctx, "late"))
	})
	var got string
	for name, test := range map[string]struct {
		from, want string
		requires   []string
	}{
		"the output of a direct requirement":             {"far", "b Ready", []string{"far"}},
		"the output of an indirect requirement":          {"far", "b Ready", []string{"near"}},
		"the output of a component that is not required": {"far", "b Failed component b uses the output of far, but does not require it", nil},
		"the output of the component itself":             {"b", "b Failed component b uses its own output", nil},
		"the output of a component that does not exist":  {"fat", `b Failed component b uses the output of "fat", which is not a component (did you mean "far"?)`, nil},
		"the output of a component without outputs":      {"near", "b Failed component b: near has 0 outputs of type string, want one", []string{"near"}},
	} {
		t.Run(name+" [Y33]", func(t *testing.T) {
			got = ""
			g := mustBuild(t, NewBuilder().Add("far", leave).Add("near", newExternal(func(context.Context) error { return nil }), "far").Add("b", ask(test.from, &got), test.requires...))
			w := visitItem(t, g, newItem("a"), newFakeSession())
			if diff := cmp.Diff(test.want, formatStates(w)[2]); diff != "" || w.states[2].State == StateReady && got != "late" {
				t.Error(diff, got)
			}
		})
	}
	t.Run("objects have their Go type and are read at most once [Y33, Y34]", func(t *testing.T) {
		c := newFakeSession()
		use := newExternal(func(ctx context.Context) error {
			typed, err := Output[*corev1.ConfigMap](ctx, "config")
			if err != nil {
				return err
			}
			typed.Data["k"] = "changed" // has no effect, because Output returns a copy
			free, err := Output[*unstructured.Unstructured](ctx, "config")
			if err != nil {
				return err
			}
			name, err := Name(ctx, "config")
			data, _, _ := unstructured.NestedString(free.Object, "data", "k")
			got = fmt.Sprint(typed.Name, data, name)
			return errors.Join(err, getError(Output[*corev1.Secret](ctx, "config")))
		})
		body := func(context.Context) (*corev1.ConfigMap, error) {
			return newConfigMap("x", map[string]string{"k": "v"}), nil
		}
		w := visitItem(t, mustBuild(t, NewBuilder().Add("config", Object(body)).Add("use", use, "config")), newItem("a"), c)
		want := "use Failed component use: config has 0 outputs of type *v1.Secret, want one"
		if diff := cmp.Diff(want, formatStates(w)[1]); diff != "" || got != "xvx" || c.reads != 1 {
			t.Error(diff, got, c.reads)
		}
	})
}

func getError[T any](_ T, err error) error { return err }

// TestConcurrentItems repeatedly runs two items at the same time with the same resources.
func TestConcurrentItems(t *testing.T) {
	t.Run("concurrent items never see each other's data [Y31, Y32, Y40]", func(t *testing.T) {
		pass := func(ctx context.Context) error {
			item, err := Item(ctx)
			if err != nil {
				return err
			}
			c, err := Config[config](ctx)
			if err != nil {
				return err
			}
			if c.Word != item.Name {
				return fmt.Errorf("item %s has the word %s", item.Name, c.Word)
			}
			return SetOutput(ctx, c.Word)
		}
		compare := func(ctx context.Context) (*corev1.ConfigMap, error) {
			word, err := Output[string](ctx, "first")
			if err != nil {
				return nil, err
			}
			if item, _ := Item(ctx); item.Name != word {
				return nil, fmt.Errorf("item %s was given %s", item.Name, word)
			}
			return newConfigMap(word, map[string]string{"word": word}), nil
		}
		g := mustBuild(t, NewBuilder().Add("first", newExternal(pass)).Add("side", newExternal(pass)).Add("second", Object(compare), "first").
			Add("third", Versioned(compare), "first", "second"))
		clusters := map[string]*fakeSession{"one": newFakeSession(), "two": newFakeSession()}
		var group sync.WaitGroup
		for range 200 {
			for _, name := range []string{"one", "two"} {
				group.Go(func() {
					r := newRun(g, newItemWithConfig(name, fmt.Sprintf(`{"Word":%q}`, name)), clusters[name], nil, logr.Discard(), 1+rand.IntN(4)) //nolint:gosec // not for secrets
					if w, _ := r.visitAll(t.Context()); !w.isReady() {
						t.Error(w.err())
					}
				})
			}
		}
		group.Wait()
		for name, c := range clusters {
			for ref, obj := range c.objects {
				if word, _, _ := unstructured.NestedString(obj.Object, "data", "word"); word != name || len(c.objects) != 2 {
					t.Errorf("%s in the cluster of %s has the word %s", ref, name, word)
				}
			}
		}
	})
}

// TestMethodsDoNotSeeTheTrigger checks that the methods of a resource have no parameter except a context, so that they
// cannot find out what triggered the run.
func TestMethodsDoNotSeeTheTrigger(t *testing.T) {
	t.Run("no method receives the reason of its call [Y40]", func(t *testing.T) {
		for _, of := range []reflect.Type{reflect.TypeFor[Resource](), reflect.TypeFor[Deleter](), reflect.TypeFor[Preparer]()} {
			for m := range of.Methods() {
				in := m.Type
				if in.NumIn() > 1 || in.NumIn() == 1 && in.In(0) != reflect.TypeFor[context.Context]() {
					t.Errorf("%s.%s takes %s", of, m.Name, in)
				}
			}
		}
	})
}
