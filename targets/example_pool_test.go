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

// read shows how a deployer uses a target.
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

// tryAgain reports whether to call Pool.Get again after an error, and how long to wait before that.
func tryAgain(err error) (after time.Duration, again bool) {
	if _, broken := errors.AsType[*targets.ConfigError](err); broken {
		return 0, false // wait until the Target changes
	}
	if down, ok := errors.AsType[*targets.UnreachableError](err); ok {
		return down.RetryAfter, true
	}
	return time.Minute, true // for example, if a secret is missing
}

// A deployer uses one pool for all deploy items. All calls for the same target share a client.
func ExamplePool() {
	api := startAPI("token") // this server represents a cluster
	defer api.Close()
	good := newResolvedTarget("good", newKubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.getCA()), "token: token", ""))
	bad := newResolvedTarget("bad", newKubeconfig("server: https://api.example.com", `exec: {command: "rm"}`, ""))

	pool := targets.NewPool(targets.PoolOptions{
		Policy: targets.Policy{AllowPrivateHosts: true}, // the server of this example listens on a loopback address
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

// A program that needs only one client does not need a pool.
func ExampleRESTConfigFromKubeconfig() {
	kubeconfig := []byte(newKubeconfig("server: https://169.254.169.254", "token: secret", ""))
	_, err := targets.RESTConfigFromKubeconfig(kubeconfig, targets.Policy{})
	fmt.Println(err)
	// Output:
	// target configuration: clusters[0].cluster.server: is an address that only the deployer can reach (loopback, link-local, metadata or in-cluster), which the operator did not allow (AllowPrivateHosts, flag --allow-private-hosts)
}

// Call ReserveMemory before each call of a client that was created from Client.Config. The memory of the response is
// then counted until the response has been decoded.
func ExampleReserveMemory() {
	ctx := context.Background()
	pool := targets.NewPool(targets.PoolOptions{Limits: targets.Limits{Object: 16 << 20}})

	held, release := targets.ReserveMemory(ctx) // before the call of the client
	defer release()

	fmt.Println(held.Err())
	pool.Close()
	// Output:
	// <nil>
}
