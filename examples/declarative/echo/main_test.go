// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
)

const (
	hello   = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"hello-echo","labels":{"app":"hello-echo"}},"spec":{"containers":[{"name":"echo","image":"hashicorp/http-echo:1.0","args":["-text=hello"]}]},"status":{"phase":"Running"}}`
	service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"hello-echo"},"spec":{"clusterIP":"10.0.0.7","selector":{"app":"hello-echo"},"ports":[{"port":5678,"protocol":"TCP","targetPort":5678}]}}`
)

func TestEcho(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		observed []any
		want     []string
		status   string
		wait     string
	}{
		"a new item [R13, R36]": {
			"hello", nil,
			[]string{"create Pod demo/hello-echo", "create Service demo/hello-echo"},
			`"pod":""`, "the Pod does not run yet",
		},
		"an item without changes [R8, R39]": {"hello", []any{hello, service}, nil, `"pod":"Running"`, ""},
		"another text [R15]": {
			"bye", []any{hello, service}, []string{"recreate Pod demo/hello-echo .spec.containers[0].args[0]"}, `"pod":"Running"`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			item := declarativetest.NewItem(t, "demo", "hello", map[string]string{"text": tc.text})
			plan, err := declarativetest.Run(t.Context(), declarative.HandlerFunc(echo), options, item, tc.observed...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, plan.ListSteps()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !strings.Contains(string(plan.Status), tc.status) || plan.Wait != tc.wait {
				t.Errorf("got %s, waits for %q", plan.Status, plan.Wait)
			}
		})
	}
}

func TestEchoIsPure(t *testing.T) {
	item := declarativetest.NewItem(t, "demo", "hello", map[string]string{"text": "hello"})
	t.Run("the handler is pure without children [R27]", func(t *testing.T) {
		declarativetest.CheckPure(t, declarative.HandlerFunc(echo), options, item)
	})
	t.Run("the handler is pure with children [R27]", func(t *testing.T) {
		declarativetest.CheckPure(t, declarative.HandlerFunc(echo), options, item, hello, service)
	})
}

func TestEchoRefusesUnknownFields(t *testing.T) {
	item := declarativetest.NewItem(t, "demo", "hello", map[string]string{"txt": "hello"})
	_, err := declarativetest.Run(t.Context(), declarative.HandlerFunc(echo), options, item)
	if err == nil || !strings.Contains(err.Error(), `"txt"`) || !contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
		t.Errorf("got %v, want an error that names the field and ends the job", err)
	}
}
