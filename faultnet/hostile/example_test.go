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

// The server behaves like a healthy target, with two exceptions. One ConfigMap has a size of 120 MiB. Every watch ends
// with an error that its resourceVersion is too old.
func Example() {
	server := hostile.New(
		hostile.When(hostile.IsWatch, hostile.WatchExpired()),
		hostile.When(hostile.HasName("big"), hostile.Gzip(), hostile.LargeObject(120<<20)),
	)
	defer server.Close()
	pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, GetTimeout: 10e9, Limits: targets.Limits{Object: 1 << 20}})
	defer pool.Close()
	c, err := pool.Get(context.Background(), newTarget(server, "token"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "big"}, &corev1.ConfigMap{})
	if over, ok := errors.AsType[*targets.LimitError](err); ok {
		fmt.Println(over)
	} else {
		fmt.Println(err)
	}
	// Output:
	// the response of the target has more than 1048576 bytes, the limit for one object (targets.Limits.Object or the flag --target-limit-object raises this limit)
}

// The server quotes the strings in each request, in every form that QuoteFuncs provides. Nevertheless, no error of the
// client contains the token of the Target.
func ExampleEcho() {
	const token = "a-very-secret-token"
	pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, GetTimeout: 10e9, Limits: targets.Limits{Object: 1 << 20}})
	defer pool.Close()
	create := func(target *lsv1alpha1.ResolvedTarget) error {
		c, err := pool.Get(context.Background(), target)
		if err != nil {
			return err
		}
		return c.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	}
	quoted := 0
	for name, quote := range hostile.QuoteFuncs() {
		server := hostile.New(hostile.When(hostile.IsWrite, hostile.Echo(http.StatusForbidden, quote)))
		err := create(newTarget(server, token))
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

// newTarget returns a resolved Target that contains a kubeconfig for the server.
func newTarget(server *hostile.Server, token string) *lsv1alpha1.ResolvedTarget {
	return &lsv1alpha1.ResolvedTarget{
		Target: &lsv1alpha1.Target{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hostile"},
			Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType},
		},
		Content: string(server.Kubeconfig(token)),
	}
}
