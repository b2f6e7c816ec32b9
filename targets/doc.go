// SPDX-License-Identifier: Apache-2.0

// Package targets works with the Target objects of Landscaper. It decides whether a deployer is responsible for a
// Target, reads the content of a Target, and provides safe access to the cluster that the content describes.
//
// MatchesSelectors compares a Target with the target selectors of a deployer's configuration. ValidateSelectors finds
// invalid selectors at start-up:
//
//	targetSelector:
//	- labels:                       # all parts of one selector must match …
//	  - {key: landscape, operator: in, values: [dev, canary]}
//	  targets:
//	  - name: cluster-1
//	- annotations:                  # … or all parts of another one
//	  - {key: environment, operator: exists}
//
// Resolver turns a Target into a ResolvedTarget. A ResolvedTarget contains the inline configuration, or the content of
// the secret that the Target refers to. The secret is in the namespace of the Target. The Resolver reads each secret
// directly from the API server, at most once per minute. Therefore the deployer needs only the permission to get
// secrets, and not to list or watch them. Errors are *ResolveError and never contain content of a secret.
//
// Pool turns a ResolvedTarget of type landscaper.gardener.cloud/kubernetes-cluster into a Client:
//
//	pool := targets.NewPool(targets.PoolOptions{Resolver: resolver})
//	c, err := pool.Get(ctx, target) // the same client for all deploy items of the target
//
// The author of a Target controls its kubeconfig, so every field of the kubeconfig must pass an allow-list. A
// kubeconfig cannot run programs, read files of the deployer, impersonate users, disable the verification of servers,
// or name addresses that only the deployer can reach. A Policy lists the additional features that an operator allows.
// Targets that name service accounts (oidcConfig, selfConfig) are rejected unless the Policy enables them. Errors are
// *ConfigError, with the path of the field and without its value.
//
// If a target does not respond, the first call of Get waits for one second. After that, Get and all requests fail
// immediately with an *UnreachableError, which contains the time until the next attempt. When credentials change, they
// are replaced inside the client, so that watches and discovery data survive. A caller that uses the client for watches
// should call Client.Pin. For programs that need a single client, RESTConfigFromKubeconfig applies the allow-list
// without a pool.
//
// The package logs nothing, has no flags, and works without a call of Pool.Start. A deployer that only needs target
// selection can use MatchesSelectors and ValidateSelectors alone. The guide is docs/targets.md.
package targets
