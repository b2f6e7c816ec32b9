// SPDX-License-Identifier: Apache-2.0

// Package targets selects, resolves and uses Landscaper's Target objects. It decides whether a deployer is responsible
// for a Target, reads the content of a Target, and provides safe access to the cluster that the content describes.
//
// Matches compares a Target with the target selectors of a deployer's configuration. Validate finds invalid selectors
// at start-up:
//
//	targetSelector:
//	- labels:                       # all parts of one selector must match …
//	  - {key: landscape, operator: in, values: [dev, canary]}
//	  targets:
//	  - name: cluster-1
//	- annotations:                  # … or all parts of another one
//	  - {key: environment, operator: exists}
//
// Resolver turns a Target into a ResolvedTarget: the inline configuration, or the content of the referenced secret in
// the Target's namespace. It reads secrets from the API server, at most once per minute and secret, so the deployer
// needs only the right to get them. Errors are *ResolveError and never contain content of a secret.
//
// Pool turns a ResolvedTarget of type landscaper.gardener.cloud/kubernetes-cluster into a Client:
//
//	pool := targets.NewPool(targets.PoolOptions{Resolver: resolver})
//	c, err := pool.Get(ctx, target) // the same client for all deploy items of the target
//
// The author of a Target controls its kubeconfig, so all of it must pass an allow-list. It cannot run programs, read
// files of the deployer, impersonate users, disable the verification of servers, or reach addresses that only the
// deployer can reach. A Policy holds what an operator allows in addition. Targets that name service accounts
// (oidcConfig, selfConfig) are rejected unless the Policy enables them. Errors are *ConfigError, with the path of the
// field and without its value.
//
// A target that does not respond costs its callers one second, once. After that, Get and all requests fail immediately
// with an *UnreachableError, which says when to try again. When credentials change, they are replaced inside the
// client, so that watches and discovery data survive. A client with watches should be pinned (Client.Pin). For programs
// that need a single client, RESTConfig applies the allow-list without a pool.
//
// The package logs nothing, and needs no flags and no call of Start. A deployer that only needs target selection can
// use that alone. The guide is docs/targets.md.
package targets
