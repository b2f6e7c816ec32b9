// SPDX-License-Identifier: Apache-2.0

// Package targets answers three questions about Landscaper's Target objects: is this deployer responsible
// for this Target, what is its content, and how is the cluster behind it used safely?
//
// Matches compares a Target with the target selectors of a deployer's configuration; Validate finds
// the faults of such selectors at start-up:
//
//	targetSelector:
//	- labels:                       # all parts of one selector must match …
//	  - {key: landscape, operator: in, values: [dev, canary]}
//	  targets:
//	  - name: cluster-1
//	- annotations:                  # … or all parts of another one
//	  - {key: environment, operator: exists}
//
// Resolver turns a Target into a ResolvedTarget: the inline configuration, or what the referenced
// secret in the Target's namespace holds. Secrets are read live, so the deployer needs no more than
// the right to get them, and at most once per minute and secret. Errors are *ResolveError and never
// contain anything of a secret's content.
//
// Pool turns a ResolvedTarget of type landscaper.gardener.cloud/kubernetes-cluster into a Client:
//
//	pool := targets.NewPool(targets.PoolOptions{Resolver: resolver})
//	c, err := pool.Get(ctx, target) // the same client for all deploy items of the target
//
// The author of a Target decides what its kubeconfig says, so all of it passes one choke point, an
// allow-list: nothing that runs programs, reads files of the deployer, impersonates, trusts every
// server or leads to where only the deployer gets. Policy is what an operator allows beyond that.
// Targets that name service accounts (oidcConfig, selfConfig) are off until the Policy enables them.
// Errors are *ConfigError, with the field and without its value.
//
// A target that does not answer costs its callers one second once; from then on Get and all requests
// fail at once with *UnreachableError, which says when to try again. Credentials that change are
// swapped inside the client, so that watches and discoveries survive; a client that has watches is
// pinned (Client.Pin). RESTConfig is the choke point alone, for programs that need one client.
//
// The package logs nothing, and needs neither Start nor flags; a
// deployer that only needs target selection can use it alone. The guide is docs/targets.md.
package targets
