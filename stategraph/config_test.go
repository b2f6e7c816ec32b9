// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/deployerlib"
)

type shopConfig struct {
	Name string `json:"name"`
}

func TestTypedConfiguration(t *testing.T) {
	body := WithConfig(func(ctx Context[shopConfig]) (*corev1.ConfigMap, error) {
		return newConfigMap(ctx.Config.Name, map[string]string{"item": ctx.Item.Name}), nil
	})
	validated := 0
	validate := func(c *shopConfig) error {
		if validated++; c.Name == "" {
			return deployerlib.NewConfigError("spec.config.name", "required")
		}
		return nil
	}
	t.Run("the configuration is decoded and checked once for all bodies [F42]", func(t *testing.T) {
		validated = 0
		g := mustBuild(t, NewBuilderOf(validate).Add("a", Object(body)))
		c := newFakeSession()
		w, err := runItem(t, g, newItemWithConfig("i", `{"name":"shop"}`), c)
		if err != nil || !w.isReady() || validated != 1 {
			t.Fatal(err, validated)
		}
		for ref, obj := range c.objects {
			if data, _ := obj.Object["data"].(map[string]any); ref.Name != "shop" || data["item"] != "i" {
				t.Error(ref, data)
			}
		}
	})
	for name, test := range map[string]struct{ config, want string }{
		"a configuration that cannot be decoded changes nothing [F42]": {`{"nam":"shop"}`, "nam"},
		"an invalid configuration changes nothing [F42]":               {`{}`, "spec.config.name: required"},
	} {
		t.Run(name, func(t *testing.T) {
			g := mustBuild(t, NewBuilderOf(validate).Add("a", Object(body)).Add("b", Object(newUnnamedConfigMap)))
			c := newFakeSession()
			_, err := runItem(t, g, newItemWithConfig("i", test.config), c)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(c.objects) > 0 {
				t.Error(err, c.listNames())
			}
		})
	}
	t.Run("Config works in a graph without a type of the configuration", func(t *testing.T) {
		c := newFakeSession()
		if w := visitItem(t, mustBuild(t, NewBuilder().Add("a", Object(body))), newItemWithConfig("i", `{"name":"shop"}`), c); !w.isReady() {
			t.Error(w.err())
		}
	})
	t.Run("Config needs the context of a run", func(t *testing.T) {
		if _, err := body(t.Context()); !errors.Is(err, ErrNoRun) {
			t.Error(err)
		}
	})
}
