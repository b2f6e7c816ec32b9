// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// newSecretName returns a function that returns the name of a Secret, for ReferenceSpec.Name.
func newSecretName(name string) func(context.Context) (types.NamespacedName, error) {
	return func(context.Context) (types.NamespacedName, error) {
		return types.NamespacedName{Namespace: "default", Name: name}, nil
	}
}

// addSecret adds a Secret to the cluster. The Secret does not belong to the item.
func (c *fakeSession) addSecret(name string, labels map[string]string) {
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"user": "cm9vdA=="}}}
	obj.SetGroupVersionKind(secretKind)
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetLabels(labels)
	c.objects[apply.ToRef(obj)] = obj
}

func TestReference(t *testing.T) {
	byName := Reference(ReferenceSpec{Kind: secretKind, Name: newSecretName("login")}, WithOutput("user", ".data.user"))
	web := Template(newFiles(map[string]string{"x.yaml": header + `data: {name: '{{ .NameOf "login" }}', user: '{{ .Output "login" "user" }}'}`}), "x.yaml")
	t.Run("a Reference blocks its dependents until its object is ready, and never writes the object [F36]", func(t *testing.T) {
		g, c := mustBuild(t, NewBuilder().Add("web", web).Add("login", byName)), newFakeSession()
		w := visitItem(t, g, newItem("i"), c)
		if diff := cmp.Diff([]string{"web Blocked by [login]", "login Progressing Secret default/login does not exist"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		c.addSecret("login", nil)
		c.unready["login"] = "not yet"
		w = visitItem(t, g, newItem("i"), c)
		if diff := cmp.Diff([]string{"web Blocked by [login]", "login Progressing Secret default/login: not yet"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		c.unready = nil
		if w = visitItem(t, g, newItem("i"), c); !w.isReady() || c.applied["login"] > 0 || strings.Contains(strings.Join(c.stored, " "), "login") {
			t.Error(formatStates(w), c.applied, c.stored)
		}
		for ref, obj := range c.objects {
			if data, _, _ := unstructured.NestedStringMap(obj.Object, "data"); ref.Name == "x" && (data["name"] != "login" || data["user"] != "cm9vdA==") {
				t.Errorf("data = %v, want the name and the user of the Secret", data)
			}
		}
	})
	t.Run("a Reference with a Selector returns all objects, sorted by namespace and name [F36]", func(t *testing.T) {
		found := map[string]*corev1.Secret{}
		reads := newExternal(func(ctx context.Context) (err error) {
			found, err = Outputs[*corev1.Secret](ctx, "logins")
			return err
		})
		bySelector := Reference(ReferenceSpec{Kind: secretKind, Selector: func(context.Context) (Selection, error) {
			return Selection{Labels: map[string]string{"a": "b"}}, nil
		}})
		g, c := mustBuild(t, NewBuilder().Add("logins", bySelector).Add("reads", reads, "logins")), newFakeSession()
		w := visitItem(t, g, newItem("i"), c)
		if diff := cmp.Diff([]string{"logins Progressing Secret with a=b does not exist", "reads Blocked by [logins]"}, formatStates(w)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		c.addSecret("one", map[string]string{"a": "b"})
		c.addSecret("two", map[string]string{"a": "b"})
		c.addSecret("other", nil)
		if w = visitItem(t, g, newItem("i"), c); !w.isReady() || len(found) != 2 || found["default/one"] == nil || found["default/two"] == nil {
			t.Error(formatStates(w), found)
		}
	})
	t.Run("an optional Reference is ready without an object [F36]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("login", Reference(ReferenceSpec{Kind: secretKind, Name: newSecretName("login")}, Optional())))
		if w := visitItem(t, g, newItem("i"), newFakeSession()); !w.isReady() {
			t.Errorf("states = %v, want all ready", formatStates(w))
		}
	})
	t.Run("a Reference needs only permissions to read [F36]", func(t *testing.T) {
		rules, err := mustBuild(t, NewBuilder().Add("login", byName)).RBAC()
		if err != nil || len(rules) != 1 {
			t.Fatal(rules, err)
		}
		if diff := cmp.Diff([]string{"get", "list", "watch"}, rules[0].Verbs); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	for name, test := range map[string]struct {
		resource Resource
		want     string
	}{
		"Reference without a kind":                {Reference(ReferenceSpec{Name: newSecretName("a")}), "the Reference has no Kind"},
		"Reference without a name":                {Reference(ReferenceSpec{Kind: secretKind}), "needs either a Name or a Selector"},
		"Reference with an update strategy [F36]": {Reference(ReferenceSpec{Kind: secretKind, Name: newSecretName("a")}, WithStrategy(apply.StrategyRecreate)), "is never written"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewBuilder().Add("a", test.resource).Build(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
}
