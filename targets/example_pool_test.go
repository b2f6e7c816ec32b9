// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/targets"
)

// read is what a deployer does with a target.
func read(ctx context.Context, pool *targets.Pool, target *lsv1alpha1.ResolvedTarget) (map[string]string, error) {
	c, err := pool.Get(ctx, target)
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "cm"}, cm); err != nil {
		return nil, fmt.Errorf("get ConfigMap: %w", err)
	}
	return cm.Data, nil
}

// tryAgain tells what to do about an error of Pool.Get.
func tryAgain(err error) (after time.Duration, again bool) {
	if _, broken := errors.AsType[*targets.ConfigError](err); broken {
		return 0, false // until the target changes
	}
	if down, ok := errors.AsType[*targets.UnreachableError](err); ok {
		return down.RetryAfter, true
	}
	return time.Minute, true // a secret that is missing, for instance
}

// One pool serves all deploy items; the calls for one target share a client.
func ExamplePool() {
	api := startAPI("token") // stands in for a cluster
	defer api.Close()
	good := resolved("good", kubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.ca()), "token: token", ""))
	bad := resolved("bad", kubeconfig("server: https://api.example.com", `exec: {command: "rm"}`, ""))

	pool := targets.NewPool(targets.PoolOptions{
		Policy: targets.Policy{AllowPrivateHosts: true}, // only because the server of this example is on this machine
	})
	defer pool.Close()
	fmt.Println(read(context.Background(), pool, good))
	_, err := read(context.Background(), pool, bad)
	fmt.Println(err)
	fmt.Println(tryAgain(err))
	// Output:
	// map[a:b] <nil>
	// target configuration: users[0].user.exec: is not allowed: it runs a program in the deployer
	// 0s false
}

// A program that needs one client only.
func ExampleRESTConfig() {
	kubeconfig := []byte(kubeconfig("server: https://169.254.169.254", "token: secret", ""))
	_, err := targets.RESTConfig(kubeconfig, targets.Policy{})
	fmt.Println(err)
	// Output:
	// target configuration: clusters[0].cluster.server: is an address that only the deployer can reach (loopback, link-local, metadata or in-cluster), which the operator did not allow (AllowPrivateHosts, flag --allow-private-hosts)
}

// A client that is created from Client.Config reports how long it decodes.
func ExampleHold() {
	ctx := context.Background()
	pool := targets.NewPool(targets.PoolOptions{Limits: targets.Limits{Object: 16 << 20}})

	held, release := targets.Hold(ctx) // around a call of a client of your own
	defer release()

	fmt.Println(held.Err())
	pool.Close()
	// Output:
	// <nil>
}
