// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/targets"
)

// A healthy target, except for one ConfigMap of 120 MiB, and for watches that are always too old.
func Example() {
	server := hostile.New(
		hostile.When(hostile.Watches, hostile.Expired()),
		hostile.When(hostile.Named("big"), hostile.Gzip(), hostile.Huge(120<<20)),
	)
	defer server.Close()
	pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, GetTimeout: 10e9})
	defer pool.Close()
	c, err := pool.Get(context.Background(), targetOf(server, "token"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "big"}, &corev1.ConfigMap{})
	if over, ok := errors.AsType[*targets.LimitError](err); ok {
		fmt.Println(over)
	}
	// Output:
	// the answer of the target has more than 8388608 bytes, the limit for one object (targets.Limits.Object or the flag --target-limit-object raises this limit)
}

// A server that quotes its requests in all ways. No error contains the token of the Target.
func ExampleEcho() {
	const token = "a-very-secret-token"
	pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, GetTimeout: 10e9})
	defer pool.Close()
	create := func(target *lsv1alpha1.ResolvedTarget) error {
		c, err := pool.Get(context.Background(), target)
		if err != nil {
			return err
		}
		return c.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	}
	quoted := 0
	for name, quote := range hostile.Quotings() {
		server := hostile.New(hostile.When(hostile.Writes, hostile.Echo(http.StatusForbidden, quote)))
		err := create(targetOf(server, token))
		if err == nil || strings.Contains(err.Error(), quote(token)) {
			fmt.Printf("%s: %v\n", name, err)
		}
		quoted++
		server.Close()
	}
	fmt.Println(quoted >= 20)
	// Output:
	// true
}

// targetOf is a Target that leads to a server.
func targetOf(server *hostile.Server, token string) *lsv1alpha1.ResolvedTarget {
	return &lsv1alpha1.ResolvedTarget{
		Target: &lsv1alpha1.Target{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hostile"},
			Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType},
		},
		Content: string(server.Kubeconfig(token)),
	}
}
