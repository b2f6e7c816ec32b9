// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"embed"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed templates
var embedded embed.FS

func TestEmbeddedTemplate(t *testing.T) {
	t.Run("the template is in the directory templates next to the code [Y27]", func(t *testing.T) {
		g := build(t, NewGraph().Add("config", Versioned(wordMapOf)).Add("web", Template(embedded, "web.yaml"), "config"))
		c := newCluster()
		w := walkItem(t, g, withConfig("a", `{"namespace":"shop","image":"web:1","replicas":0}`), c)
		if !w.ready() {
			t.Fatal(w.err())
		}
		for ref, obj := range c.objects {
			if ref.Kind != "Deployment" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
			env := containers[0].(map[string]any)["env"].([]any)[0].(map[string]any)["value"].(string)
			if ref.Namespace != "shop" || !strings.HasPrefix(env, "settings-") {
				t.Errorf("%s uses %s", ref, env)
			}
		}
	})
	t.Run("the error for a missing value names component, file and line [Y28]", func(t *testing.T) {
		g := build(t, NewGraph().Add("config", Object(wordMapOf)).Add("web", Template(embedded, "web.yaml"), "config"))
		err := walkItem(t, g, withConfig("a", `{"namespace":"shop","replicas":1}`), newCluster()).err()
		if err == nil || !strings.Contains(err.Error(), "component web: template: templates/web.yaml:17:") || !strings.Contains(err.Error(), `no entry for key "image"`) {
			t.Error(err)
		}
	})
}

// wordMapOf returns an object that does not depend on the configuration.
func wordMapOf(context.Context) (*corev1.ConfigMap, error) { return configMap("settings", nil), nil }
