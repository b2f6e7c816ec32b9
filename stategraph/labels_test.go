// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestIdentity(t *testing.T) {
	t.Run("labels name the component and the item [Y20, Y21, Y22, Y23, Y24]", func(t *testing.T) {
		got, annotations := Identity(newItem("web"), "database", "")
		want := map[string]string{
			"state.deployerkit.dev/component":        "database",
			"state.deployerkit.dev/parent-group":     "landscaper.gardener.cloud",
			"state.deployerkit.dev/parent-version":   "v1alpha1",
			"state.deployerkit.dev/parent-plural":    "deployitems",
			"state.deployerkit.dev/parent-namespace": "shop",
			"state.deployerkit.dev/parent-name":      "web",
			"state.deployerkit.dev/parent-uid":       "uid-web",
		}
		if diff := cmp.Diff(want, got); diff != "" || len(annotations) > 0 {
			t.Error(diff, annotations)
		}
	})
	t.Run("values of more than 63 characters are hashed, and an annotation contains the full value [Y22, Y24]", func(t *testing.T) {
		long, other := strings.Repeat("a.", 100)+"x", strings.Repeat("a.", 100)+"y"
		one, annotations := Identity(newItem(long), "c", "")
		two, _ := Identity(newItem(other), "c", "")
		if annotations[labelParentName] != long || annotations[labelParentUID] != "uid-"+long || len(annotations) != 2 {
			t.Errorf("annotations %v", annotations)
		}
		if one[labelParentName] == two[labelParentName] || !strings.HasPrefix(one[labelParentName], "a-a-a-") {
			t.Errorf("%s and %s", one[labelParentName], two[labelParentName])
		}
		for key, value := range one {
			if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
				t.Errorf("%s=%s: %v", key, value, faults)
			}
		}
	})
	t.Run("instances may have any name [Yx6]", func(t *testing.T) {
		for _, instance := range []string{"a/b", "Ü", "-", strings.Repeat("€", 80), "ok"} {
			set, annotations := Identity(newItem("web"), "c", instance)
			if faults := validation.IsValidLabelValue(set[LabelInstance]); len(faults) > 0 || set[LabelInstance] == "" {
				t.Errorf("%q: %v", instance, faults)
			}
			obj := &unstructured.Unstructured{}
			obj.SetLabels(set)
			obj.SetAnnotations(annotations)
			if getInstance(obj) != instance {
				t.Errorf("%q was read as %q", instance, getInstance(obj))
			}
		}
	})
	t.Run("objects are found by their labels, regardless of their names [Y25]", func(t *testing.T) {
		item := newItem(strings.Repeat("long", 40))
		set, _ := Identity(item, "db", "one")
		for selector, want := range map[string]bool{
			Selector(item.UID, "db", "").String(): true, Selector(item.UID, "db", "one").String(): true, Selector(item.UID, "", "").String(): true,
			Selector(item.UID, "db", "two").String(): false, Selector("other", "db", "").String(): false, Selector(item.UID, "web", "").String(): false,
		} {
			parsed, err := labels.Parse(selector)
			if err != nil || parsed.Matches(labels.Set(set)) != want {
				t.Errorf("%s: want %t (%v)", selector, want, err)
			}
		}
	})
}

func TestGeneratedNames(t *testing.T) {
	named := func(item, component, generate string) string {
		g := mustBuild(t, NewBuilder().Add(component, Object(func(context.Context) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: generate}}, nil
		})))
		c := newFakeSession()
		if w := visitItem(t, g, newItem(item), c); !w.isReady() || len(c.listNames()) != 1 {
			t.Fatal(w.err())
		}
		return strings.TrimPrefix(c.listNames()[0], "ConfigMap ")
	}
	t.Run("missing names are computed and stay the same [Y25]", func(t *testing.T) {
		first := named("a", "web", "")
		if first != named("a", "web", "") || !strings.HasPrefix(first, "web-") || len(first) != len("web-")+hashLength {
			t.Errorf("name = %q, want web- and a hash that is always the same", first)
		}
		if first == named("b", "web", "") || strings.TrimPrefix(first, "web-") == strings.TrimPrefix(named("a", "dbs", ""), "dbs-") {
			t.Error("the name does not depend on item and component")
		}
		if got := named("a", "web", "my-"); !strings.HasPrefix(got, "my-") || len(got) != len("my-")+hashLength {
			t.Errorf("name = %q, want my- and a hash", got)
		}
		if got := named("a", strings.Repeat("x", 63), ""); len(got) > 63 {
			t.Errorf("%s has %d characters", got, len(got))
		}
	})
}
