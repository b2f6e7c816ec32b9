// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newWordConfigMap returns a ConfigMap with the Word in the configuration of the item.
func newWordConfigMap(ctx context.Context) (*corev1.ConfigMap, error) {
	c, err := Config[config](ctx)
	if err != nil {
		return nil, err
	}
	return newConfigMap("settings", map[string]string{"word": c.Word}), nil
}

func TestVersioned(t *testing.T) {
	use := Object(func(ctx context.Context) (*corev1.Secret, error) {
		name, err := Name(ctx, "config")
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "user"}, StringData: map[string]string{"config": name}}, err
	})
	g := mustBuild(t, NewBuilder().Add("config", Versioned(newWordConfigMap)).Add("use", use, "config").Add("other", Object(newUnnamedConfigMap)))
	c := newFakeSession()
	names := func(word string) []string {
		t.Helper()
		if w := visitItem(t, g, newItemWithConfig("a", fmt.Sprintf(`{"Word":%q}`, word)), c); !w.isReady() {
			t.Fatal(w.err())
		}
		var out []string
		for _, name := range c.listNames() {
			if strings.HasPrefix(name, "ConfigMap settings-") {
				out = append(out, name)
			}
		}
		return out
	}
	t.Run("a change yields another object, and the same content yields the same object [Yx4]", func(t *testing.T) {
		one := names("one")
		if len(one) != 1 || cmp.Diff(one, names("one")) != "" {
			t.Fatalf("objects = %v, want one, and the same for the same content", one)
		}
		both := names("two")
		if len(both) != 2 {
			t.Fatalf("objects = %v, want two", both)
		}
		used := ""
		for ref, obj := range c.objects {
			if ref.Kind == "Secret" {
				used, _, _ = unstructured.NestedString(obj.Object, "stringData", "config")
			}
			if immutable, _, _ := unstructured.NestedBool(obj.Object, "immutable"); immutable != strings.HasPrefix(ref.Name, "settings-") {
				t.Errorf("%s: immutable %t", ref, immutable)
			}
		}
		if "ConfigMap "+used == one[0] || used == "" {
			t.Errorf("what requires it uses %q", used)
		}
	})
	t.Run("a Secret without a name is versioned [Yx4]", func(t *testing.T) {
		body := func(key string) func(context.Context) (*corev1.Secret, error) {
			return func(context.Context) (*corev1.Secret, error) {
				return &corev1.Secret{StringData: map[string]string{key: "x"}}, nil
			}
		}
		c := newFakeSession()
		for _, key := range []string{"a", "b", "a"} {
			visitItem(t, mustBuild(t, NewBuilder().Add("s", Versioned(body(key)))), newItem("a"), c)
		}
		if got := c.listNames(); len(got) != 2 || !strings.HasPrefix(got[0], "Secret s-") {
			t.Errorf("objects = %v, want two Secrets s-…", got)
		}
	})
	t.Run("all immutable fields are part of the content [Yx4]", func(t *testing.T) {
		secret := func(change func(*corev1.Secret)) Resource {
			return Versioned(func(context.Context) (*corev1.Secret, error) {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"a": []byte("x")}}
				change(s)
				return s, nil
			})
		}
		plain := newConfigMap("c", map[string]string{"a": "x"})
		binary := newConfigMap("c", map[string]string{"a": "x"})
		binary.BinaryData = map[string][]byte{"b": []byte("y")}
		c := newFakeSession()
		for _, r := range []Resource{
			secret(func(*corev1.Secret) {}), secret(func(s *corev1.Secret) { s.Type = "example.com/key" }),
			Versioned(func(context.Context) (*corev1.ConfigMap, error) { return plain, nil }),
			Versioned(func(context.Context) (*corev1.ConfigMap, error) { return binary, nil }),
		} {
			visitItem(t, mustBuild(t, NewBuilder().Add("s", r)), newItem("a"), c)
		}
		if got := c.listNames(); len(got) != 4 {
			t.Errorf("four contents are %v", got)
		}
	})
	t.Run("the earlier object is kept until all its dependents are ready [Yx4]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("config", Versioned(newWordConfigMap)).Add("pods", stubResource{}, "config").Add("web", stubResource{}, "pods").Add("other", stubResource{}))
		for name, test := range map[string]struct {
			says map[string]string
			want bool
		}{
			"all components are ready":            {nil, true},
			"a dependent is not ready":            {map[string]string{"pods": "rolling"}, false},
			"an indirect dependent is not ready":  {map[string]string{"web": "rolling"}, false},
			"the component itself is not ready":   {map[string]string{"config": "!no"}, false},
			"an unrelated component is not ready": {map[string]string{"other": "!no"}, true},
		} {
			w, _ := runWalk(t, g, 1, test.says)
			if got := w.canPrune("config"); got != test.want {
				t.Errorf("%s: may go %t, want %t", name, got, test.want)
			}
			if got := w.canPrune("left-the-graph"); got != (len(test.says) == 0) {
				t.Errorf("%s: a component that left may go %t", name, got)
			}
		}
	})
}

func TestForEach(t *testing.T) {
	type zone struct{ Name string }
	zones := func(ctx context.Context) ([]zone, error) {
		c, err := Config[config](ctx)
		if err != nil {
			return nil, err
		}
		var out []zone
		for name := range strings.SplitSeq(c.Word, ",") {
			out = append(out, zone{name})
		}
		return out, nil
	}
	nameOf := func(z zone) string { return z.Name }
	each := Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
		z, err := Element[zone](ctx)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{Data: map[string]string{"zone": z.Name, "instance": Instance(ctx)}}, nil
	})
	walk := func(t *testing.T, word string, unready ...string) (*walkResult, *fakeSession) {
		t.Helper()
		c := newFakeSession()
		for _, name := range unready {
			c.unready[name] = "starts"
		}
		return visitItem(t, mustBuild(t, NewBuilder().Add("pool", ForEach(zones, nameOf, each))), newItemWithConfig("i", fmt.Sprintf(`{"Word":%q}`, word)), c), c
	}
	t.Run("each element yields an instance with its own label and name [Yx6]", func(t *testing.T) {
		w, c := walk(t, "a,b,c/d")
		if !w.isReady() || len(c.objects) != 3 || c.applied["pool"] != 1 {
			t.Fatal(w.err(), c.listNames())
		}
		for _, obj := range c.objects {
			data, _, _ := unstructured.NestedStringMap(obj.Object, "data")
			if getInstance(obj) != data["zone"] || data["instance"] != data["zone"] || obj.GetLabels()[LabelComponent] != "pool" {
				t.Errorf("%s: labels %v, data %v", obj.GetName(), obj.GetLabels(), data)
			}
		}
	})
	t.Run("a ForEach is ready when all instances are ready [Yx6]", func(t *testing.T) {
		_, c := walk(t, "a,b")
		name := strings.TrimPrefix(c.listNames()[1], "ConfigMap ")
		w, _ := walk(t, "a,b", name)
		if diff := cmp.Diff([]string{"pool Progressing ConfigMap " + name + ": starts"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("each instance has its own outputs [Yx6]", func(t *testing.T) {
		got := map[string]string{}
		use := newExternal(func(ctx context.Context) error {
			all, err := Outputs[*corev1.ConfigMap](ctx, "pool")
			for instance, obj := range all {
				got[instance] = obj.Data["zone"]
			}
			return err
		})
		c := newFakeSession()
		w := visitItem(t, mustBuild(t, NewBuilder().Add("pool", ForEach(zones, nameOf, each)).Add("use", use, "pool")), newItemWithConfig("i", `{"Word":"a,b"}`), c)
		if diff := cmp.Diff(map[string]string{"a": "a", "b": "b"}, got); diff != "" || !w.isReady() {
			t.Error(diff, w.err())
		}
	})
	t.Run("the number of instances is limited, and names must differ [Yx6]", func(t *testing.T) {
		for word, want := range map[string]string{
			strings.Repeat("x,", maxInstances): "pool Failed 1001 instances, at most 1000 are allowed",
			"a,a":                              `pool Failed two elements have the name "a"`,
			"":                                 "pool Failed the name of an element is empty",
		} {
			w, c := walk(t, word)
			if diff := cmp.Diff([]string{want}, formatStates(w)); diff != "" || len(c.objects) > 0 {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	})
	t.Run("errors name the instance", func(t *testing.T) {
		wrong := Object(func(ctx context.Context) (*corev1.ConfigMap, error) { _, err := Element[int](ctx); return nil, err })
		w := visitItem(t, mustBuild(t, NewBuilder().Add("pool", ForEach(zones, nameOf, wrong)).Add("alone", wrong)), newItemWithConfig("i", `{"Word":"a"}`), newFakeSession())
		want := []string{
			`pool Failed instance "a": component pool: the element is a stategraph.zone, not a int`,
			"alone Failed component alone has no elements, because it was not created by ForEach",
		}
		if diff := cmp.Diff(want, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("an instance with an error does not stop the others, and keeps its objects [F78]", func(t *testing.T) {
		fails := func(z zone) bool { return strings.HasPrefix(z.Name, "bad") }
		flawed := Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
			z, err := Element[zone](ctx)
			switch {
			case err != nil:
				return nil, err
			case z.Name == "bad-panic":
				panic("out of range")
			case fails(z):
				return nil, errors.New("no such zone")
			}
			name := ""
			if strings.HasPrefix(z.Name, "same") {
				name = "shared"
			}
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"zone": z.Name}}, nil
		})
		for word, want := range map[string]struct {
			applied []string
			says    []string
		}{
			"a,bad,b":          {[]string{"a", "b"}, []string{`instance "bad": no such zone`}},
			"a,bad-panic,b":    {[]string{"a", "b"}, []string{`instance "bad-panic": panic: out of range`}},
			"a,twice,twice,b":  {[]string{"a", "b"}, []string{`two elements have the name "twice"`}},
			"a,,b":             {[]string{"a", "b"}, []string{"the name of an element is empty"}},
			"a,same1,same2,b":  {[]string{"a", "b", "same1"}, []string{`instance "same2": the component returns`, "shared twice"}},
			"bad,bad2":         {nil, []string{`instance "bad": `, `instance "bad2": `}},
			"a,bad,same,bad-2": {[]string{"a", "same"}, []string{`instance "bad": `, `instance "bad-2": `}},
		} {
			c := newFakeSession()
			w := visitItem(t, mustBuild(t, NewBuilder().Add("pool", ForEach(zones, nameOf, flawed))), newItemWithConfig("i", fmt.Sprintf(`{"Word":%q}`, word)), c)
			var applied []string
			for _, obj := range c.objects {
				applied = append(applied, getInstance(obj))
			}
			slices.Sort(applied)
			if diff := cmp.Diff(want.applied, applied); diff != "" {
				t.Errorf("%s: applied instances (-want +got):\n%s", word, diff)
			}
			for _, text := range want.says {
				if got := formatStates(w); len(got) != 1 || !strings.Contains(got[0], "pool Failed") || !strings.Contains(got[0], text) {
					t.Errorf("%s: states %q, want %q", word, got, text)
				}
			}
			if w.canPrune("pool") {
				t.Errorf("%s: the objects of the component may be pruned", word)
			}
		}
	})
	t.Run("a ForEach cannot contain another ForEach", func(t *testing.T) {
		w := visitItem(t, mustBuild(t, NewBuilder().Add("pool", ForEach(zones, nameOf, ForEach(zones, nameOf, each)))), newItemWithConfig("i", `{"Word":"a"}`), newFakeSession())
		if diff := cmp.Diff([]string{`pool Failed instance "a": a ForEach must not contain another ForEach`}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
