// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
	"github.com/deployerkit/deployerkit/examples/declarative/redis"
	"github.com/deployerkit/deployerkit/targets"
)

var handler = declarative.HandlerFunc(redis.Sync)

// newSecret returns the Secret of the item "sessions".
func newSecret(password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sessions-redis"}, Data: map[string][]byte{"password": []byte(password)}}
}

func TestPasswordIsGeneratedOnce(t *testing.T) {
	item := declarativetest.NewItem(t, "demo", "sessions", redis.Config{Version: "8.2"})
	first, err := declarativetest.Run(t.Context(), handler, redis.Options, item)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create Deployment.apps demo/sessions-redis", "create Secret demo/sessions-redis", "create Service demo/sessions-redis"}
	if diff := cmp.Diff(want, first.ListSteps()); diff != "" {
		t.Errorf("[R38] a new item:\n%s", diff)
	}
	second, err := declarativetest.Run(t.Context(), handler, redis.Options, item, first.Observed...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Object("Secret demo/sessions-redis"), second.Object("Secret demo/sessions-redis")); diff != "" {
		t.Errorf("[R34] the second call changed the password:\n%s", diff)
	}
	t.Run("the handler is pure after the password is generated [R27, R34]", func(t *testing.T) {
		declarativetest.CheckPure(t, handler, redis.Options, item, first.Observed...)
	})
}

func TestNewVersion(t *testing.T) {
	item := declarativetest.NewItem(t, "demo", "sessions", redis.Config{Version: "8.2"})
	first, err := declarativetest.Run(t.Context(), handler, redis.Options, item)
	if err != nil {
		t.Fatal(err)
	}
	item = declarativetest.NewItem(t, "demo", "sessions", redis.Config{Version: "8.4"})
	second, err := declarativetest.Run(t.Context(), handler, redis.Options, item, first.Observed...)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"change Deployment.apps demo/sessions-redis .spec.template.spec.containers[0].image"}
	if diff := cmp.Diff(want, second.ListSteps()); diff != "" {
		t.Errorf("[R14] %s", diff)
	}
}

func TestStatus(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "sessions-redis", Generation: 2}}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Message: "progress"}, {Type: appsv1.DeploymentAvailable, Message: "no pod is available"},
		}}
		if change != nil {
			change(d)
		}
		return d
	}
	for name, tc := range map[string]struct {
		observed []any
		want     redis.Status
		wait     string
	}{
		"no Deployment":           {nil, redis.Status{Message: "the Deployment does not exist yet"}, "Redis is not ready: the Deployment does not exist yet"},
		"a ready Deployment [R8]": {[]any{deployment(nil)}, redis.Status{Ready: true}, ""},
		"a change that the controller has not observed": {
			[]any{deployment(func(d *appsv1.Deployment) { d.Generation = 3 })},
			redis.Status{Message: "its Deployment has just changed"},
			"Redis is not ready: its Deployment has just changed",
		},
		"only Pods of the old version": {
			[]any{deployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 })},
			redis.Status{Message: "no pod is available"},
			"Redis is not ready: no pod is available",
		},
	} {
		t.Run(name, func(t *testing.T) {
			item := declarativetest.NewItem(t, "demo", "sessions", redis.Config{Version: "8.2"})
			plan, err := declarativetest.Run(t.Context(), handler, redis.Options, item, append(tc.observed, newSecret("p"))...)
			if err != nil {
				t.Fatal(err)
			}
			var got redis.Status
			if err := json.Unmarshal(plan.Status, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(redis.Status{}, "Address", "Secret")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Address != "sessions-redis.demo.svc:6379" || got.Secret != "sessions-redis" {
				t.Errorf("status = %+v, want the address and the Secret of item sessions", got)
			}
			if plan.Wait != tc.wait {
				t.Errorf("waits for %q, want %q", plan.Wait, tc.wait)
			}
		})
	}
}

func TestInvalidConfig(t *testing.T) {
	for name, config := range map[string]redis.Config{
		"spec.config.version: required":                  {},
		`spec.config.memory: "plenty" is not a quantity`: {Version: "8", Memory: "plenty"},
		`spec.config.memory: "1 Gi" is not a quantity`:   {Version: "8", Memory: "1 Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := declarativetest.Run(t.Context(), handler, redis.Options, declarativetest.NewItem(t, "demo", "sessions", config))
			if err == nil || !strings.HasSuffix(err.Error(), name) || !contract.HasUnrecoverableCode(contract.ErrorCodes(err)) {
				t.Errorf("error = %v, want an unrecoverable error that ends with %q", err, name)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	args := redis.Args(targets.Policy{AllowPrivateHosts: true})
	if args.Type != redis.Type || args.Deployer == nil || redis.Options.Targets.AllowPrivateHosts {
		t.Errorf("got %+v, want the type and a deployer, and Options without the policy of the call", args)
	}
}
