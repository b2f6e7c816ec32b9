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
		g := mustBuild(t, NewBuilder().Add("config", Versioned(newFixedConfigMap)).Add("web", Template(embedded, "web.yaml"), "config"))
		c := newFakeSession()
		w := visitItem(t, g, newItemWithConfig("a", `{"namespace":"shop","image":"web:1","replicas":0}`), c)
		if !w.isReady() {
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
		g := mustBuild(t, NewBuilder().Add("config", Object(newFixedConfigMap)).Add("web", Template(embedded, "web.yaml"), "config"))
		err := visitItem(t, g, newItemWithConfig("a", `{"namespace":"shop","replicas":1}`), newFakeSession()).err()
		if err == nil || !strings.Contains(err.Error(), "component web: template: templates/web.yaml:17:") || !strings.Contains(err.Error(), `no entry for key "image"`) {
			t.Error(err)
		}
	})
}

// newFixedConfigMap returns an object that does not depend on the configuration.
func newFixedConfigMap(context.Context) (*corev1.ConfigMap, error) {
	return newConfigMap("settings", nil), nil
}
